"""Serves open bases: MCP over stdio, Streamable HTTP and SSE, the pages and checks around it."""
