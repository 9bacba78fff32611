"""The offline copy of the Commission's guidance: pages, passages, and how they get here."""
