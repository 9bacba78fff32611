"""Turns files into text with pages, sections and chunks, without risk to the server."""
