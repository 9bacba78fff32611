"""A program for each Python client: it carries out a plan and reports what its caller was told."""
