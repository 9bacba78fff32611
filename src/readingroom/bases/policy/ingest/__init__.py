"""Bringing revisions of a policy in: one, many from a list, or in the background."""
