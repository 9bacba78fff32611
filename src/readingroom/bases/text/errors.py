"""Errors of the text base."""

from readingroom.core.errors import KnowledgeError


class TextUnreadable(KnowledgeError):
    """The text base's file is missing, not UTF-8, too large, or cannot be read."""

    code = "text_unreadable"
    http_status = 503
