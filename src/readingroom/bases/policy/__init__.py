"""Policies and their revisions: what each said, and which was in force on a day."""
