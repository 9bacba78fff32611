"""Errors of stored data: stores, keys, folders and backups."""

from readingroom.core.errors import KnowledgeError


def describe_cause(error: Exception) -> str:
    """Return why the file system or a database refused, without the paths of this machine."""
    return getattr(error, "strerror", None) or str(error)


def find_operator_detail(error: BaseException | None) -> str:
    """Return what callers are not told of an error, or of what it comes of; mostly nothing."""
    while error is not None:
        if isinstance(error, DatabaseUnreachable) and error.operator_detail:
            return error.operator_detail
        error = error.__cause__
    return ""


class EmbeddingMismatch(KnowledgeError):
    """The stored vectors were made by another model or precision than the one that runs."""

    code = "embedding_mismatch"
    http_status = 409


class StoreUnusable(KnowledgeError):
    """The chunk store cannot be read or written; the message has the reason."""

    code = "store_unusable"
    http_status = 503


class FolderInUse(KnowledgeError):
    """Another process owns the base's folder in the data directory."""

    code = "folder_in_use"
    http_status = 409


class InvalidKeyName(KnowledgeError):
    """A key's name is 1 to 64 letters, digits, dots, dashes or underscores; `env` is reserved."""

    code = "invalid_key_name"
    http_status = 422


class InvalidSubject(KnowledgeError):
    """The subject of an OAuth token is 1 to 255 printable characters."""

    code = "invalid_subject"
    http_status = 422


class KeyExists(KnowledgeError):
    """There is a key of that name already; revoke it first, or choose another name."""

    code = "key_exists"
    http_status = 409


class KeyNotFound(KnowledgeError):
    """There is no key of that name; `readingroom keys list` shows all."""

    code = "key_not_found"
    http_status = 404


class JobNotFound(KnowledgeError):
    """There is no job with that id; ended ones are kept for a while, then forgotten."""

    code = "job_not_found"
    http_status = 404


class TooManyJobs(KnowledgeError):
    """Too much waits already, of this caller or of all; send it again when some of it is done."""

    code = "too_many_jobs"
    http_status = 429


class StorageFailed(KnowledgeError):
    """A file of the data directory cannot be read or written: permissions, a full disk, damage."""

    code = "storage_failed"
    http_status = 503


class BackupUnusable(KnowledgeError):
    """A file is not a backup, is damaged, or was made by a newer version than this one."""

    code = "backup_unusable"
    http_status = 422


class DataNotEmpty(KnowledgeError):
    """A restore would replace existing data; --force moves that aside first."""

    code = "data_not_empty"
    http_status = 409


class RegistryUnavailable(KnowledgeError):
    """The policy registry cannot be reached or started, and without it no policy can be read."""

    code = "registry_unavailable"
    http_status = 503


class WrongRoom(KnowledgeError):
    """The registry at REDIS_URL and the data directory do not belong together."""

    code = "wrong_room"
    http_status = 500


class DatabaseFailed(KnowledgeError):
    """The shared database refuses a statement; the message has the reason."""

    code = "database_failed"
    http_status = 503


class DatabaseUnreachable(DatabaseFailed):
    """The shared database does not answer, or has ended the connection."""

    code = "database_unreachable"
    http_status = 503
    operator_detail = ""
    """What the driver said, with the address: for the log and the shell, never for a caller."""


class DatabaseConflict(DatabaseFailed):
    """A row breaks a rule of the shared database together with another row."""

    code = "database_conflict"
    http_status = 409


class InvalidDatabaseValue(DatabaseFailed):
    """A value does not fit into the column of the shared database that it was written to."""

    code = "invalid_database_value"
    http_status = 422


class SchemaTooNew(KnowledgeError):
    """The shared database was written by a newer Reading Room than this one."""

    code = "schema_too_new"
    http_status = 503
