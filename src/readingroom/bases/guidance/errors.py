"""Errors of the guidance base, and the list of those that its taxonomy names."""

from readingroom.core.errors import InternalError, InvalidArguments, KnowledgeError
from readingroom.net.errors import (
    InvalidPath,
    UpstreamError,
    UpstreamParameterError,
    UpstreamRateLimited,
    UpstreamUnavailable,
)


class NotFoundOrRedirected(UpstreamError):
    """Requested path not found or redirected

    The error names the target of a redirect, and the alternative to a page that is gone, where
    GOV.UK gives one.
    """

    code = "not_found_or_redirected"
    http_status = 404


class StaleCacheServed(UpstreamError):
    """Stale cache served due to upstream failure

    A warning inside an answer, with the age of the copy that was served; it is never raised.
    """

    code = "stale_cache_served"
    http_status = 200


class ContentOutOfScope(UpstreamError):
    """Content is not part of Charity Commission guidance"""

    code = "content_out_of_scope"
    http_status = 403


# In the order of the taxonomy, which callers see. The last two are raised by the server around us.
ERROR_CLASSES: tuple[type[KnowledgeError], ...] = (
    UpstreamRateLimited,
    NotFoundOrRedirected,
    StaleCacheServed,
    ContentOutOfScope,
    UpstreamParameterError,
    UpstreamUnavailable,
    InvalidPath,
    InvalidArguments,
    InternalError,
)
