"""Searching a collection in the shared database, which several processes read and write."""
