"""Polite, cached reads of a remote API: client, breaker, limiter, cache."""
