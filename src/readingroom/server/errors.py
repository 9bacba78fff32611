"""Errors of HTTP requests and of the server's own start."""

from readingroom.core.errors import KnowledgeError


class Unauthorized(KnowledgeError):
    """The request has no key, a wrong key, or a scheme other than Bearer."""

    code = "unauthorized"
    http_status = 401


class IssuerUnreachable(KnowledgeError):
    """The authorization server's keys cannot be fetched; the token may be valid."""

    code = "issuer_unreachable"
    http_status = 503


class DoctorFailed(KnowledgeError):
    """A check of the data ended without a result; `readingroom doctor` in a shell may say why."""

    code = "doctor_failed"
    http_status = 500


class ReadOnlyKey(KnowledgeError):
    """The key may only read; one added without --read-only may also write."""

    code = "read_only_key"
    http_status = 403


class Misdirected(KnowledgeError):
    """The Host header names another server; if it is ours, add it to READINGROOM_ALLOWED_HOSTS."""

    code = "misdirected"
    http_status = 421


class ForbiddenOrigin(KnowledgeError):
    """A page of another origin is calling; if it may, add it to READINGROOM_ALLOWED_ORIGINS."""

    code = "forbidden_origin"
    http_status = 403


class FormExpired(KnowledgeError):
    """The form's token belongs to no session of this browser; the page must be loaded again."""

    code = "form_expired"
    http_status = 403


class RoleRequired(KnowledgeError):
    """The key that the browser signed in with may not do this; another key may."""

    code = "role_required"
    http_status = 403


class RequestTooLarge(KnowledgeError):
    """The body has more than READINGROOM_MAX_BODY_BYTES bytes; an upload has a limit of its own."""

    code = "request_too_large"
    http_status = 413


class TooManySessions(KnowledgeError):
    """READINGROOM_MAX_SESSIONS sessions are open, or READINGROOM_MAX_SESSIONS_PER_CALLER of this
    caller; one must end first.
    """

    code = "too_many_sessions"
    http_status = 503


class TooManyMessages(KnowledgeError):
    """32 messages of an SSE session have no answer yet; its event stream must be read first."""

    code = "too_many_messages"
    http_status = 429


class TooManyBytes(KnowledgeError):
    """Bodies and unread answers of this caller take too much memory; some must finish first."""

    code = "too_many_bytes"
    http_status = 429


class TooManyOpenRequests(KnowledgeError):
    """This caller waits for too many answers at once; some must come first."""

    code = "too_many_open_requests"
    http_status = 429


class RateLimited(KnowledgeError):
    """This caller is over READINGROOM_RATE_LIMIT; `Retry-After` says when to come back."""

    code = "rate_limited"
    http_status = 429


class UnknownCommand(KnowledgeError):
    """The admin route has no such command, or its base is not served here."""

    code = "unknown_command"
    http_status = 404


class PortInUse(KnowledgeError):
    """Another program listens on that address; choose another port with --port."""

    code = "port_in_use"
    http_status = 500
