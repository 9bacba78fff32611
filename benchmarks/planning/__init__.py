"""A planning office: its policies with their revisions, and the documents of its applications."""
