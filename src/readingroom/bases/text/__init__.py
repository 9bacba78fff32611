"""The text base: one plain text file, read once, given whole."""
