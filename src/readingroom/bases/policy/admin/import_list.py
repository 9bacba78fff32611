"""The list of a bulk import: read from its JSON file, and its files handed over."""

from pathlib import Path

from pydantic import Field, ValidationError

from readingroom.bases.policy.admin_models import (
    ImportedPolicy,
    ImportedRevision,
    NewPolicy,
    NewRevision,
)
from readingroom.bases.policy.ingest.files import choose_file_extension
from readingroom.core.errors import InvalidArguments
from readingroom.core.settings import RoomSettings
from readingroom.ingest.errors import FileNotFound
from readingroom.protocol.tool import Body
from readingroom.storage.handover import hand_over_file


class _ListedRevision(NewRevision):
    """A revision of a bulk import, as its list names it."""

    file: str = Field(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")


class _ListedPolicy(NewPolicy):
    """A policy of a bulk import, as its list names it."""

    revisions: list[_ListedRevision] = Field(default=[])


class _PolicyList(Body):
    """The list itself."""

    policies: list[_ListedPolicy]


def prepare_import(
    list_path: Path, settings: RoomSettings
) -> tuple[list[ImportedPolicy], list[str]]:
    """Hand over every file that a list names; return the policies, and what could not be read."""
    failure_messages: list[str] = []
    imported_policies = []
    for listed_policy in _read_policy_list(list_path):
        imported_revisions = []
        for listed_revision in listed_policy.revisions:
            try:
                handed_over_name = _hand_over_readable_file(
                    list_path.parent / listed_revision.file, settings
                )
            except FileNotFound as error:
                failure_messages.append(
                    f"{listed_policy.source} {listed_revision.version_label}: {error.message}"
                )
                continue
            new_revision = NewRevision.model_validate(listed_revision.model_dump(exclude={"file"}))
            file_extension = choose_file_extension(listed_revision.file)
            imported_revisions.append(
                ImportedRevision.model_validate(
                    {
                        "revision": new_revision,
                        "file": handed_over_name,
                        "extension": file_extension,
                    }
                )
            )
        new_policy = NewPolicy.model_validate(listed_policy.model_dump(exclude={"revisions"}))
        imported_policies.append(ImportedPolicy(policy=new_policy, revisions=imported_revisions))
    return imported_policies, failure_messages


def _read_policy_list(list_path: Path) -> list[_ListedPolicy]:
    try:
        return _PolicyList.model_validate_json(list_path.read_bytes()).policies
    except ValidationError as error:
        error_message = 'is not a list {"policies": [...]}; see readingroom policy import --help'
        field_errors = InvalidArguments.from_validation_error(error).errors
        raise InvalidArguments(
            [{"field": list_path.name, "message": error_message}, *field_errors]
        ) from error


def _hand_over_readable_file(file_path: Path, settings: RoomSettings) -> str:
    try:
        return hand_over_file(settings.data / "policy", file_path)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise FileNotFound(f"{file_path} cannot be read: {error.strerror}") from error
