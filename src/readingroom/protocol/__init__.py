"""What a base must say of itself to be served: its tools, its name, how it tells an error."""
