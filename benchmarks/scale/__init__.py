"""The two engines side by side: embedded, and on PostgreSQL."""
