"""Who may call: keys, OAuth tokens, and which of them each path asks for."""
