"""Pages for people about policies: their timeline, their changes, and their pages as pictures."""
