"""Errors of calls to other hosts."""

from readingroom.core.errors import KnowledgeError


class UpstreamError(KnowledgeError):
    """A request to an upstream host failed, or was refused before it was sent

    The parent of everything that the guidance base's error taxonomy lists.
    """

    code = "guidance_error"
    http_status = 500


class UpstreamRateLimited(UpstreamError):
    """GOV.UK API rate limit exceeded

    Ours too: GOV.UK allows ten requests a second, so this server lets no client ask for more.
    """

    code = "upstream_rate_limited"
    http_status = 429


class UpstreamParameterError(UpstreamError):
    """A search filter or its value is not known, here or to GOV.UK"""

    code = "upstream_parameter_error"
    http_status = 422


class UpstreamUnavailable(UpstreamError):
    """GOV.UK could not be reached, failed, or sent what cannot be read"""

    code = "upstream_unavailable"
    http_status = 503


class InvalidPath(UpstreamError):
    """The path is not a plain GOV.UK path such as /guidance/charity-annual-return"""

    code = "invalid_path"
    http_status = 422


class DownloadFailed(KnowledgeError):
    """An official host did not send a file, or sent a damaged one, on every attempt."""

    code = "download_failed"
    http_status = 502
