"""Keeps the process that reads a document from files, networks and other processes."""
