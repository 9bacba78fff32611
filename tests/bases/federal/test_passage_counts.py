"""How many passages there are, on both engines: scores depend on it."""

from contextlib import closing

from readingroom.bases.federal import store
from readingroom.bases.federal.search.passages import PassageOwners
from readingroom.bases.federal.store import FederalPlace
from tests.support.federal.made_records import amendment, write_records


def test_passages_are_counted_and_not_their_numbers(place: FederalPlace) -> None:
    """Updates and loads that were broken off leave numbers that no passage has."""
    for title in ("First", "Second", "Third"):
        write_records(place, amendment(1, f"{title} amendment"))
    owners = PassageOwners()
    with closing(store.connect(place)) as db:
        owners.add_new_passages(db)
        numbers = [row["chunk"] for row in db.execute("SELECT chunk FROM chunks")]
        assert len(owners) == len(numbers) < max(numbers)
        write_records(place, amendment(2, "Another amendment"))
        owners.add_new_passages(db)
        assert len(owners) > len(numbers)
