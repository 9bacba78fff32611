"""PostgreSQL, where several processes share what one process keeps in its data directory."""
