"""Errors of the guidance base."""

from readingroom.net.errors import GuidanceError


class NotFoundOrRedirected(GuidanceError):
    """Requested path not found or redirected

    A redirect names its target, a page that is gone its alternative, where GOV.UK gives one.
    """

    code = "not_found_or_redirected"
    http_status = 404


class StaleCacheServed(GuidanceError):
    """Stale cache served due to upstream failure

    A warning inside an answer, with the age of what was served; it is never raised.
    """

    code = "stale_cache_served"
    http_status = 200


class ContentOutOfScope(GuidanceError):
    """Content is not part of Charity Commission guidance"""

    code = "content_out_of_scope"
    http_status = 403
