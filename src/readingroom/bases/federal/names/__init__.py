"""Resolving a name as people write it to the records it may mean."""
