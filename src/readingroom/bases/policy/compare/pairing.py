"""Two revisions of a policy with their sections paired: what a comparison is made from."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from readingroom.bases.policy.chunks import references
from readingroom.bases.policy.chunks.search import make_nearest_revision
from readingroom.bases.policy.chunks.store import StoredChunk
from readingroom.bases.policy.compare import likeness, passages
from readingroom.bases.policy.compare.likeness import SectionPair
from readingroom.bases.policy.errors import SectionNotFound
from readingroom.bases.policy.models import NearestRevision
from readingroom.bases.policy.registry.records import Revision
from readingroom.protocol.search import UnreadRevision


@dataclass(frozen=True, slots=True)
class PairedRevisions:
    """Two revisions, and every section of both once."""

    old_revision: NearestRevision
    new_revision: NearestRevision
    section_pairs: Sequence[SectionPair]
    """In the order of the newer text, then what it dropped."""
    unread_revisions: list[UnreadRevision] = field(default_factory=list)
    """Those of either day that could not be read."""


def pair_revisions(
    section_ref: str | None,
    old_revision_and_chunks: tuple[Revision, Sequence[StoredChunk]],
    new_revision_and_chunks: tuple[Revision, Sequence[StoredChunk]],
    revisions: Sequence[Revision],
) -> PairedRevisions:
    """Return two revisions with their sections paired, or only a section and those in it.

    Raise `SectionNotFound` if neither side has the section.
    """
    section_pairs = likeness.pair_sections(
        likeness.list_revision_sections(old_revision_and_chunks[1]),
        likeness.list_revision_sections(new_revision_and_chunks[1]),
    )
    if section_ref is not None:
        found_section_refs = {
            found_section_ref
            for _, chunks in (old_revision_and_chunks, new_revision_and_chunks)
            if (
                found_section_ref := references.find_section_ref(
                    section_ref, passages.index_references(chunks)
                )
            )
        }
        if not found_section_refs:
            raise make_section_error(
                section_ref, new_revision_and_chunks[0], new_revision_and_chunks[1]
            )
        section_pairs = [
            section_pair
            for section_pair in section_pairs
            if section_pair.has_side_in_sections(found_section_refs)
        ]
    return PairedRevisions(
        make_nearest_revision(old_revision_and_chunks[0], revisions),
        make_nearest_revision(new_revision_and_chunks[0], revisions),
        section_pairs,
    )


def make_section_error(
    section_ref: str,
    revision: Revision,
    chunks: Sequence[StoredChunk],
    other_revisions: Sequence[Revision] = (),
) -> SectionNotFound:
    """Return an error that names similar sections, and the revisions that have this one."""
    version_labels_text = ", ".join(
        other_revision.version_label for other_revision in other_revisions
    )
    similar_refs = references.find_similar_refs(section_ref, passages.index_references(chunks))
    return SectionNotFound(
        f"Section '{section_ref}' not found in policy '{revision.source}'"
        + (
            f" ({revision.version_label}); it exists in the revision of {version_labels_text}"
            if version_labels_text
            else ""
        )
        + passages.describe_nearest_sections(similar_refs, chunks),
        revision_id=revision.revision_id,
        nearest=similar_refs,
        found_in=[other_revision.revision_id for other_revision in other_revisions],
    )
