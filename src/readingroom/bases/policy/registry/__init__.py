"""Policies and their revisions with their dates: records, rules of time, store and resolver."""
