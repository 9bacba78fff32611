"""Errors of HTTP requests and of the server's own start."""

from readingroom.core.errors import KnowledgeError


class Unauthorized(KnowledgeError):
    """The request carries no key, a wrong key, or another scheme than Bearer."""

    code = "unauthorized"
    http_status = 401


class IssuerUnreachable(KnowledgeError):
    """The authorization server gives us no keys to check tokens with; the token may be good."""

    code = "issuer_unreachable"
    http_status = 503


class ReadOnlyKey(KnowledgeError):
    """The key is for reading alone; one made without --read-only may also write."""

    code = "read_only_key"
    http_status = 403


class Misdirected(KnowledgeError):
    """The Host header names a server we are not; set READINGROOM_ALLOWED_HOSTS if we are."""

    code = "misdirected"
    http_status = 421


class ForbiddenOrigin(KnowledgeError):
    """A page of another origin is calling; set READINGROOM_ALLOWED_ORIGINS if it may."""

    code = "forbidden_origin"
    http_status = 403


class TooManySessions(KnowledgeError):
    """READINGROOM_MAX_SESSIONS sessions are open; one must end first."""

    code = "too_many_sessions"
    http_status = 503


class RateLimited(KnowledgeError):
    """This caller is over READINGROOM_RATE_LIMIT; `Retry-After` says when to come back."""

    code = "rate_limited"
    http_status = 429


class UnknownCommand(KnowledgeError):
    """The admin route knows no such command, or its base is not served here."""

    code = "unknown_command"
    http_status = 404


class PortInUse(KnowledgeError):
    """Another program listens on that address; choose another with --port."""

    code = "port_in_use"
    http_status = 500
