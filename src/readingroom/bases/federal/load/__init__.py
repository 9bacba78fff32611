"""Loading official files into the federal database: read, parsed, written, synchronised."""
