"""Requests to other hosts: HTTP clients, retries, caching, rate limits and downloads."""
