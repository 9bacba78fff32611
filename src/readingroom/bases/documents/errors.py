"""Errors of the documents base."""

from readingroom.core.errors import KnowledgeError


class DocumentNotFound(KnowledgeError):
    """No document has this id; `list_ingested_documents` names those of an application."""

    code = "document_not_found"
    http_status = 404


class PageNotFound(KnowledgeError):
    """The document has no such page; `page_count` says how many it has."""

    code = "page_not_found"
    http_status = 404


class ApplicationNotFound(KnowledgeError):
    """The application has neither a record nor a document; its reference is compared exactly."""

    code = "application_not_found"
    http_status = 404
