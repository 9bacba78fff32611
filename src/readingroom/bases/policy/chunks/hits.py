"""Hits of a search as answers have them: neighbours joined, with what is needed to cite them."""

from collections.abc import Sequence

from readingroom.bases.policy.chunks.joining import join_chunk_texts, list_printed_page_labels
from readingroom.bases.policy.chunks.store import StoredChunk
from readingroom.bases.policy.ids import format_passage_id
from readingroom.bases.policy.models import PolicyHit
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import format_citation
from readingroom.bases.policy.registry.resolver import PolicyOnDay
from readingroom.core.modes import Mode
from readingroom.engine.hybrid import group_neighbours
from readingroom.engine.index import ChunkHit


def group_chunks_by_passage(
    chunks: Sequence[StoredChunk], search_mode: Mode
) -> list[list[StoredChunk]]:
    """Return chunks that were found, best first, with neighbours in one section together."""
    return group_neighbours(chunks, _are_neighbours, search_mode)


def make_policy_hit(
    chunks: Sequence[StoredChunk],
    chunk_hit: ChunkHit,
    policy_as_of_today: PolicyOnDay,
    is_section_named: bool = False,
) -> PolicyHit:
    """Return a passage of one chunk, or of neighbours of which the first is the one found best."""
    best_chunk = chunks[0]
    neighbours = sorted(chunks[1:], key=lambda neighbour: neighbour.chunk_index)
    page_numbers = sorted(
        {page_number for joined_chunk in chunks for page_number in joined_chunk.pages}
    )
    revision = timeline.get_revision(policy_as_of_today.timeline, best_chunk.revision_id)
    succeeding_revision = timeline.find_successor(revision, policy_as_of_today.timeline)
    return PolicyHit(
        chunk_id=best_chunk.chunk_id,
        text=join_chunk_texts(chunks),
        relevance_score=chunk_hit.relevance_score,
        source=best_chunk.source,
        revision_id=best_chunk.revision_id,
        version_label=revision.version_label,
        section_ref=best_chunk.section_ref,
        page_number=best_chunk.page_number,
        effective_from=revision.effective_from,
        effective_to=timeline.find_last_day(revision, policy_as_of_today.timeline),
        in_force_today=policy_as_of_today.revision == revision,
        superseded_by=succeeding_revision.revision_id if succeeding_revision else None,
        citation=format_citation(
            revision,
            best_chunk.section_ref,
            page_numbers,
            best_chunk.section_title,
            best_chunk.kind_note,
            list_printed_page_labels(chunks, page_numbers),
        ),
        id=format_passage_id(best_chunk.chunk_id),
        score=chunk_hit.score,
        parts=chunk_hit.score_parts,
        section_title=best_chunk.section_title,
        passage_kind=best_chunk.passage_kind,
        exact_reference=is_section_named,
        stage=revision.stage,
        printed_page=best_chunk.printed_pages[0] if best_chunk.printed_pages else None,
        joined_chunk_ids=[neighbour.chunk_id for neighbour in neighbours],
    )


def _are_neighbours(chunk: StoredChunk, other_chunk: StoredChunk) -> bool:
    """Return whether one chunk follows the other in the same section."""
    return (
        abs(chunk.chunk_index - other_chunk.chunk_index) == 1
        and chunk.revision_id == other_chunk.revision_id
        and chunk.section_ref == other_chunk.section_ref
    )
