"""Errors of questions over several bases."""

from readingroom.core.errors import KnowledgeError


class BaseSilent(KnowledgeError):
    """A base did not answer the desk in time; the answers of the others stand."""

    code = "base_silent"
    http_status = 503


class ValidationDateUnknown(KnowledgeError):
    """The application's record has no validation date; give `date`, or set it."""

    code = "validation_date_unknown"
    http_status = 422
