"""What confining the readers of documents costs."""
