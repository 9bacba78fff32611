"""What can go wrong, once: every error a caller may be told.

KnowledgeError                 code                  http
├── InvalidArguments           invalid_arguments     422   an argument does not fit its question
│   └── InvalidRequest           validation_error    422   the same over REST
├── TextUnreadable             text_unreadable       503   the text base's file cannot be served
├── GuidanceError              (its children's)            what the guidance base may be told
│   ├── UpstreamRateLimited      upstream_rate_limited    429
│   ├── NotFoundOrRedirected     not_found_or_redirected  404
│   ├── StaleCacheServed         stale_cache_served       200   a warning, never raised
│   ├── ContentOutOfScope        content_out_of_scope     403
│   ├── UpstreamParameterError   upstream_parameter_error 422
│   ├── UpstreamUnavailable      upstream_unavailable     503
│   └── InvalidPath              invalid_path             422
├── ModelUnavailable           model_unavailable     503   the embedding model is missing or broken
├── EmbeddingMismatch          embedding_mismatch    409   vectors made by another model are here
├── StoreUnusable              store_unusable        503   the chunk store cannot be read or written
├── SearchTimeout              search_timeout        503   a search took longer than it may
├── FileNotFound               file_not_found        404   no such file, or outside the roots
├── UnsupportedFileType        unsupported_file_type 422   not named like a PDF or an image
├── ExtractionFailed           extraction_failed     422   a file cannot be parsed within limits
├── NoContent                  no_content            422   a file was read and holds no text
├── NoChunks                   no_chunks             422   there is text, but nothing to search in
├── DocumentNotFound           document_not_found    404   no document of that id
├── PageNotFound               page_not_found        404   the document has no such page
├── ApplicationNotFound        application_not_found 404   nothing is known of the application
├── Unauthorized               unauthorized          401   no key, a wrong key, a wrong scheme
├── IssuerUnreachable          issuer_unreachable    503   no token can be checked just now
├── ReadOnlyKey                read_only_key         403   a key for reading, used to write
├── Misdirected                misdirected           421   a Host this server does not answer to
├── ForbiddenOrigin            forbidden_origin      403   a web page we do not know is calling
├── TooManySessions            too_many_sessions     503   every session of this face is in use
├── RateLimited                rate_limited          429   this caller asks too often
├── UnknownCommand             unknown_command       404   no such operator's command here
├── FolderInUse                folder_in_use         409   another process owns a base's folder
├── InvalidKeyName             invalid_key_name      422   a key's name is malformed
├── InvalidSubject             invalid_subject       422   no token's subject can be that
├── KeyExists                  key_exists            409   a key of that name is there already
├── KeyNotFound                key_not_found         404   no key of that name
├── UnrecognizedId             unrecognized_id_format 422  no id of ours has that form
├── RecordNotFound             record_not_found      404   a well-formed id without a record
├── RecordGone                 record_gone           410   withdrawn; the hint names its successor
├── UnknownSource              unknown_source        422   no source of that name
├── SourceNotSearchable        source_not_searchable 422   a registry: names, not texts
├── NotSearchableSemantically  source_not_searchable_semantically 422   a source without vectors
├── AggregateTooBroad          aggregate_too_broad   422   more rows or buckets than one may cost
├── AggregateTimeout           aggregate_timeout     503   an aggregate took longer than it may
├── InvalidCursor              invalid_cursor        422   a cursor that no list gave out
├── LoadFailed                 load_failed           422   nothing of what was named can be loaded
├── BaseSilent                 base_silent           503   a base did not answer the desk in time
├── ValidationDateUnknown      validation_date_unknown 422 no day says which policy applies
├── DownloadFailed             download_failed       502   an official file could not be fetched
├── StorageFailed              storage_failed        503   the data directory cannot be used
├── BackupUnusable             backup_unusable       422   a backup is damaged, newer, or not one
├── DataNotEmpty               data_not_empty        409   a restore would cover what is there
├── ClientFileUnreadable       client_file_unreadable 422  a client's configuration is not JSON
├── RegistryUnavailable        registry_unavailable  503   the policy registry does not answer
├── WrongRoom                  wrong_room            500   registry and folder are not of one room
├── InvalidDate                invalid_date          422   a date is not YYYY-MM-DD
├── InvalidEffectiveDate       invalid_effective_date 400  the same, asked of REST
├── PolicyNotFound             policy_not_found      404   no policy has this slug
├── PolicyExists               policy_already_exists 409   a policy has this slug already
├── RevisionNotFound           revision_not_found    404   the policy has no such revision
├── RevisionOverlap            revision_overlap      409   two revisions would be in force at once
├── SoleRevision               cannot_delete_sole_revision 409  nothing else would be in force
├── RevisionBusy               revision_busy         409   the revision is being ingested now
├── SectionNotFound            section_not_found     404   the revision has no such section
├── FileTooLarge               file_too_large        422   the file is over the limit
├── InvalidSetting             invalid_setting       500   a setting's value does not fit
├── UnsafeBind                 unsafe_bind           500   an open server on a public address
├── PortInUse                  port_in_use           500   another program listens there
├── OwnerUnreachable           owner_unreachable     503   the process that owns a folder is silent
├── OwnerRefused               (the owner's code)    500   the owner told an error, repeated here
└── Internal                   internal              500   our fault; the log has the reason

Services raise them. `server/mcp` renders them for tools and resources, `server/http/errors.py` for
HTTP, `server/http/admin.py` and `commands/console.py` for commands, and nobody else does.
"""

from collections.abc import Container, Mapping
from typing import Any, Self

from pydantic import ValidationError

_KINDS = {
    200: "warning",
    401: "authentication",
    403: "permission",
    404: "not_found",
    409: "conflict",
    410: "gone",
    429: "rate_limit",
    500: "internal",
    503: "unavailable",
}


class KnowledgeError(Exception):
    """An error told to the caller as it is: a stable code, a sentence, and what to do next."""

    code: str
    http_status: int

    def __init__(self, message: str, **hint: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint: Mapping[str, Any] = hint

    @property
    def kind(self) -> str:
        """The family a program may act on when it does not know the code."""
        return _KINDS.get(self.http_status, "invalid_request")


class InvalidArguments(KnowledgeError):
    """An argument is missing, unknown, of the wrong type or out of bounds; each one is named."""

    code = "invalid_arguments"
    http_status = 422

    def __init__(self, errors: list[dict[str, str]]) -> None:
        self.named = "; ".join(f"{error['field']}: {error['message']}" for error in errors)
        super().__init__(f"Invalid arguments: {self.named}", errors=errors)
        self.errors = errors

    @classmethod
    def of(cls, failure: ValidationError, sent: Any = None) -> Self:
        """What a model refused, field by field, without repeating what was sent.

        Where one of several kinds was wanted, Pydantic complains once for each, at a place that
        names the kind. `sent` tells kinds from fields: one complaint then, of the field.
        """
        problems = failure.errors(include_url=False, include_input=False, include_context=False)
        told: dict[str, list[str]] = {}
        for problem in problems[:_MOST_NAMED]:
            place = problem["loc"]
            if sent is not None and problem["type"] != "missing":
                place = _sent_at(place, sent)
            told.setdefault(_place(place), []).append(problem["msg"])
        named = [{"field": field, "message": "; or: ".join(said)} for field, said in told.items()]
        if len(problems) > _MOST_NAMED:
            more = f"{len(problems) - _MOST_NAMED} more do not fit"
            named.append({"field": "arguments", "message": more})
        return cls(named)


class InvalidRequest(InvalidArguments):
    """A parameter, a field or the body of a REST request does not fit; each one is named."""

    code = "validation_error"


_MOST_NAMED = 20  # an error is read by a person or a model; neither wants thousands of fields


def _sent_at(location: tuple[int | str, ...], sent: Any) -> tuple[int | str, ...]:
    """A complaint's place without the kinds in it: nothing was sent under their names."""
    place: list[int | str] = []
    for step in location:
        held: Container[Any] = range(len(sent)) if isinstance(sent, list) else ()
        if step in (sent if isinstance(sent, Mapping) else held):
            place.append(step)
            sent = sent[step]
    return tuple(place)


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location))[:100] or "arguments"


class TextUnreadable(KnowledgeError):
    """The text base's file is missing, not UTF-8, too large, or cannot be read."""

    code = "text_unreadable"
    http_status = 503


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


class ModelUnavailable(KnowledgeError):
    """The embedding model is not installed or cannot be used; lexical search works without it."""

    code = "model_unavailable"
    http_status = 503


class EmbeddingMismatch(KnowledgeError):
    """The stored vectors were made by another model or precision than the one that runs."""

    code = "embedding_mismatch"
    http_status = 409


class StoreUnusable(KnowledgeError):
    """The chunk store cannot be read or written; the message says what it met."""

    code = "store_unusable"
    http_status = 503


class SearchTimeout(KnowledgeError):
    """A search took longer than it may; fewer or rarer words, or a filter, make it shorter."""

    code = "search_timeout"
    http_status = 503


class FileNotFound(KnowledgeError):
    """There is no such file, it is not a regular one, or it lies outside the allowed folders."""

    code = "file_not_found"
    http_status = 404


class UnsupportedFileType(KnowledgeError):
    """The file's name is not that of a PDF or of a PNG, JPEG, TIFF or BMP image; or a policy's
    upload is no PDF.
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
    """There is text, but no chunk of it could be made or found."""

    code = "no_chunks"
    http_status = 422


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


class FolderInUse(KnowledgeError):
    """Another process owns the base's folder in the data directory."""

    code = "folder_in_use"
    http_status = 409


class InvalidKeyName(KnowledgeError):
    """A key's name is 1 to 64 letters, digits, dots, dashes or underscores; `env` is taken."""

    code = "invalid_key_name"
    http_status = 422


class InvalidSubject(KnowledgeError):
    """The subject of an OAuth token is 1 to 255 printable characters."""

    code = "invalid_subject"
    http_status = 422


class KeyExists(KnowledgeError):
    """A key of that name is there already; revoke it first, or choose another name."""

    code = "key_exists"
    http_status = 409


class KeyNotFound(KnowledgeError):
    """There is no key of that name; `readingroom keys list` shows those there are."""

    code = "key_not_found"
    http_status = 404


class UnrecognizedId(KnowledgeError):
    """The text is no id of any federal record; `hint.valid_prefixes` lists the forms there are."""

    code = "unrecognized_id_format"
    http_status = 422


class RecordNotFound(KnowledgeError):
    """The id is well formed, but no record of that id has been loaded."""

    code = "record_not_found"
    http_status = 404


class RecordGone(KnowledgeError):
    """The record was withdrawn; `hint.successor_id` names what took its place, if anything did."""

    code = "record_gone"
    http_status = 410


class UnknownSource(KnowledgeError):
    """There is no federal source of that name; `hint.valid_sources` lists those there are."""

    code = "unknown_source"
    http_status = 422


class SourceNotSearchable(KnowledgeError):
    """A registry holds names, not texts: `hint.use_tool` names the tool that looks names up."""

    code = "source_not_searchable"
    http_status = 422


class NotSearchableSemantically(KnowledgeError):
    """The source has no vectors; `hint.valid_sources` lists those that have."""

    code = "source_not_searchable_semantically"
    http_status = 422


class AggregateTooBroad(KnowledgeError):
    """The aggregate would read more rows, or give more buckets, than one may;
    `hint.suggest_narrowing` lists filters that would fit.
    """

    code = "aggregate_too_broad"
    http_status = 422


class AggregateTimeout(KnowledgeError):
    """The aggregate was stopped at its time limit; `hint.suggest_narrowing` lists narrower ones."""

    code = "aggregate_timeout"
    http_status = 503


class InvalidCursor(KnowledgeError):
    """The cursor is not one that this list gave out; leave it away to start again."""

    code = "invalid_cursor"
    http_status = 422


class LoadFailed(KnowledgeError):
    """Nothing of what was named could be loaded; the message says why."""

    code = "load_failed"
    http_status = 422


class BaseSilent(KnowledgeError):
    """A base did not answer the desk in time; what the others said stands."""

    code = "base_silent"
    http_status = 503


class ValidationDateUnknown(KnowledgeError):
    """The application's record has no validation date; give `date`, or set it."""

    code = "validation_date_unknown"
    http_status = 422


class DownloadFailed(KnowledgeError):
    """An official host did not give a file, or gave a damaged one, however often it was asked."""

    code = "download_failed"
    http_status = 502


class StorageFailed(KnowledgeError):
    """A file of the data directory cannot be read or written: permissions, a full disk, damage."""

    code = "storage_failed"
    http_status = 503


class BackupUnusable(KnowledgeError):
    """A file is not a backup, is damaged, or was made by a newer version than this one."""

    code = "backup_unusable"
    http_status = 422


class DataNotEmpty(KnowledgeError):
    """A restore would cover data that is there; --force moves that aside first."""

    code = "data_not_empty"
    http_status = 409


class ClientFileUnreadable(KnowledgeError):
    """A client's configuration file is not plain JSON, so nothing is written into it."""

    code = "client_file_unreadable"
    http_status = 422


class RegistryUnavailable(KnowledgeError):
    """The policy registry cannot be reached or started; nothing is known without it."""

    code = "registry_unavailable"
    http_status = 503


class WrongRoom(KnowledgeError):
    """The registry at REDIS_URL and the data directory do not belong together."""

    code = "wrong_room"
    http_status = 500


class InvalidDate(KnowledgeError):
    """A date is written YYYY-MM-DD and nothing else."""

    code = "invalid_date"
    http_status = 422


class InvalidEffectiveDate(KnowledgeError):
    """The date in a REST query is not YYYY-MM-DD."""

    code = "invalid_effective_date"
    http_status = 400


class PolicyNotFound(KnowledgeError):
    """No policy has this slug; `valid_sources` names those there are."""

    code = "policy_not_found"
    http_status = 404


class PolicyExists(KnowledgeError):
    """A policy has this slug already; add a revision to it instead."""

    code = "policy_already_exists"
    http_status = 409


class RevisionNotFound(KnowledgeError):
    """The policy has no revision of this id; `valid_revisions` names those there are."""

    code = "revision_not_found"
    http_status = 404


class RevisionOverlap(KnowledgeError):
    """Two revisions of one policy would be in force on the same day; shorten one first."""

    code = "revision_overlap"
    http_status = 409


class SoleRevision(KnowledgeError):
    """The only active revision of a policy cannot be deleted."""

    code = "cannot_delete_sole_revision"
    http_status = 409


class RevisionBusy(KnowledgeError):
    """The revision is being ingested; its status says how far it has come."""

    code = "revision_busy"
    http_status = 409


class SectionNotFound(KnowledgeError):
    """The revision has no section of this reference; `nearest` names some it has."""

    code = "section_not_found"
    http_status = 404


class FileTooLarge(KnowledgeError):
    """The file is larger than is accepted."""

    code = "file_too_large"
    http_status = 422


class InvalidSetting(KnowledgeError):
    """A flag, a variable or a line of readingroom.toml has a value that does not fit."""

    code = "invalid_setting"
    http_status = 500


class UnsafeBind(KnowledgeError):
    """No key is set, so only this machine may reach the server unless --insecure says otherwise."""

    code = "unsafe_bind"
    http_status = 500


class PortInUse(KnowledgeError):
    """Another program listens on that address; choose another with --port."""

    code = "port_in_use"
    http_status = 500


class OwnerUnreachable(KnowledgeError):
    """The process that owns the folder holds its lock but does not answer."""

    code = "owner_unreachable"
    http_status = 503


class OwnerRefused(KnowledgeError):
    """The process that ran the command told an error; its code and message are passed on."""

    code = "owner_refused"
    http_status = 500

    def __init__(self, code: str, message: str, hint: Mapping[str, Any]) -> None:
        super().__init__(message, **hint)
        self.code = code


class Internal(KnowledgeError):
    """Something unexpected failed; the server's log has the reason under the request id."""

    code = "internal"
    http_status = 500
