"""The knowledge bases: `BASES` is the one list of them."""

from collections.abc import Iterable, Mapping

from readingroom.bases import documents, federal, guidance, policy, text
from readingroom.core.settings import RoomSettings
from readingroom.protocol.spec import BaseSpec, KnowledgeBase

BASES: dict[str, BaseSpec] = {
    spec.name: spec
    for spec in (documents.SPEC, federal.SPEC, guidance.SPEC, policy.SPEC, text.SPEC)
}


def open_bases(
    base_names: Iterable[str],
    settings: RoomSettings,
    specs_by_name: Mapping[str, BaseSpec] = BASES,
) -> tuple[KnowledgeBase, ...]:
    """Open these bases, each with the same settings."""
    return tuple(specs_by_name[name].open_base(settings) for name in base_names)
