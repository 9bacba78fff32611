"""Searching federal texts by words, by meaning, or by both."""
