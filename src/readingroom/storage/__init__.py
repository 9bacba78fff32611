"""What is kept on disk: databases, chunks, keys, files, locks, intents and backups."""
