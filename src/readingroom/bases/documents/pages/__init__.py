"""Pages for people about applications: their documents, and the files they send."""
