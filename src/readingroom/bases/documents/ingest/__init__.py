"""Bringing documents in: one file, or many into one application."""
