"""Errors of files that cannot be read."""

from readingroom.core.errors import KnowledgeError


class FileNotFound(KnowledgeError):
    """There is no such file, it is not a regular file, or it lies outside the allowed folders."""

    code = "file_not_found"
    http_status = 404


class UnsupportedFileType(KnowledgeError):
    """The file's name is not that of a format that is read, the upload for a policy is not one that
    policies may be, or a page of a file without fixed pages was asked for as a picture.
    """

    code = "unsupported_file_type"
    http_status = 422


class ExtractionFailed(KnowledgeError):
    """The file is damaged, encrypted or too large, or reading it went over a limit."""

    code = "extraction_failed"
    http_status = 422


class NoContent(KnowledgeError):
    """The file was read, and no text was found in it."""

    code = "no_content"
    http_status = 422


class NoChunks(KnowledgeError):
    """There is text, but it has no chunks."""

    code = "no_chunks"
    http_status = 422
