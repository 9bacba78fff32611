"""The official MCP conformance suites, run against a test-only base on our own dispatcher."""
