"""Errors of calls to other hosts."""

from readingroom.core.errors import KnowledgeError


class GuidanceError(KnowledgeError):
    """What the guidance base's taxonomy lists: its children, by their docstrings' first lines."""

    code = "guidance_error"
    http_status = 500


class UpstreamRateLimited(GuidanceError):
    """GOV.UK API rate limit exceeded

    Ours too: GOV.UK allows ten requests a second, so this server lets no client ask for more.
    """

    code = "upstream_rate_limited"
    http_status = 429


class UpstreamParameterError(GuidanceError):
    """A search filter or its value is not known, here or to GOV.UK"""

    code = "upstream_parameter_error"
    http_status = 422


class UpstreamUnavailable(GuidanceError):
    """GOV.UK could not be reached, failed, or sent what cannot be read"""

    code = "upstream_unavailable"
    http_status = 503


class InvalidPath(GuidanceError):
    """The path is not a plain GOV.UK path such as /guidance/charity-annual-return"""

    code = "invalid_path"
    http_status = 422


class DownloadFailed(KnowledgeError):
    """An official host did not give a file, or gave a damaged one, however often it was asked."""

    code = "download_failed"
    http_status = 502
