"""Errors of the command line."""

from readingroom.core.errors import KnowledgeError


class ClientFileUnreadable(KnowledgeError):
    """A client's configuration file is not plain JSON, so nothing is written into it."""

    code = "client_file_unreadable"
    http_status = 422


class UnsafeBind(KnowledgeError):
    """No key is set, so only this machine may reach the server unless --insecure says otherwise."""

    code = "unsafe_bind"
    http_status = 500


class CopyDiffers(KnowledgeError):
    """What was copied to a database is not what the data directory holds."""

    code = "copy_differs"
    http_status = 409
