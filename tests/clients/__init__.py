"""Real MCP clients, each in a process of its own, against one server with every base."""
