"""Suspects a newer file of being cut short when it leaves out most records of an older one."""

from collections.abc import Sequence, Sized

from readingroom.bases.federal.schema.sources import Source

_FEW_RECORDS_COUNT = 20
"""How many records a newer file may leave out without being suspected."""


class FileCutShort(ValueError):
    """A newer file leaves out most records of an older one."""


def is_probably_cut_short(missing_items: Sized, remaining_items: Sized) -> bool:
    """Return whether a newer file leaves out so many records that it was probably cut short."""
    return len(missing_items) > max(_FEW_RECORDS_COUNT, len(remaining_items))


def make_cut_short_error(
    items_noun: str, missing_items: Sized, remaining_items: Sized
) -> FileCutShort:
    """Return the error that says how many would be withdrawn, and what to do."""
    return FileCutShort(
        f"it would withdraw {len(missing_items)} {items_noun} and keep {len(remaining_items)}; "
        "if the file is complete, use `federal update --even-most`"
    )


def check_removals(record_source: Source, missing_ids: Sequence[str], remaining_ids: Sized) -> None:
    """Raise `FileCutShort` when most records of a source would be withdrawn."""
    if is_probably_cut_short(missing_ids, remaining_ids):
        raise make_cut_short_error(f"records of {record_source.name}", missing_ids, remaining_ids)
