"""What is kept on disk: keys, locks and, later, chunks and registries."""
