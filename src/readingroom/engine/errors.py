"""Errors of the embedding model and of searches."""

from readingroom.core.errors import KnowledgeError


class ModelUnavailable(KnowledgeError):
    """The embedding model is not installed or cannot be used; lexical search works without it."""

    code = "model_unavailable"
    http_status = 503


class VectorsRefused(KnowledgeError):
    """Vectors that a worker sent are not those of the texts it was given; nothing is stored."""

    code = "vectors_refused"
    http_status = 422


class SearchTimeout(KnowledgeError):
    """A search took longer than it may; fewer or rarer words, or a filter, make it shorter."""

    code = "search_timeout"
    http_status = 503


def make_search_timeout(max_seconds: float) -> SearchTimeout:
    """Return the error for a search that took longer than this."""
    return SearchTimeout(
        f"The search took longer than {max_seconds:g} s; ask with fewer or rarer words"
    )
