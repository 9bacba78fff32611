"""File formats: which are accepted, and how each is read."""
