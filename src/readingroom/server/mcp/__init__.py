"""MCP: tools, prompts and resources over Streamable HTTP, SSE and stdio."""
