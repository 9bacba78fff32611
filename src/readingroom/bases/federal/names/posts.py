"""Who holds a post: leaders of the chambers, chairs and ranking members of committees."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.congress import format_ordinal
from readingroom.storage.database import Database

FindCommittees = Callable[[str], Sequence[str]]
"""Returns the ids of the committees that a text names: `Appropriations` is one of each chamber."""

_CHAMBERS = frozenset(("house", "senate"))
_PARTY_SIDES = frozenset(("majority", "minority"))
_FILLER_WORDS = frozenset(
    ("current", "former", "member", "now", "present", "us", "united", "states")
)
_PARTY_WORDS_BY_LETTER = {"D": ("democratic",), "R": ("republican",)}
_PAST_SCORE = 0.75
_ROLE_BY_WORD = {
    **dict.fromkeys(("chair", "chairman", "chairwoman", "chairperson", "chairs"), "Chair"),
    "ranking": "Ranking",
}


def find_holders(
    db: Database, post_name: str, find_committees: FindCommittees
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    """Yield who holds or held the post that a text names: id, score, reason and record."""
    post_words = _list_words(post_name)
    said_years = {word for word in post_words if word.isdecimal() and len(word) == 4}
    said_words = frozenset(post_words) - said_years - _FILLER_WORDS
    yield from _find_leaders(db, said_words, said_years)
    role = next((_ROLE_BY_WORD[word] for word in post_words if word in _ROLE_BY_WORD), None)
    if role:
        vice_prefix = "Vice " if "vice" in said_words else ""
        committee_name = " ".join(
            word for word in post_words if word not in {*_ROLE_BY_WORD, *_FILLER_WORDS, "vice"}
        )
        for committee_id in find_committees(committee_name) if committee_name else ():
            yield from _find_chairs(db, committee_id, vice_prefix + role)


def _list_words(post_name: str) -> list[str]:
    party_letter_by_word = fold.load_vocabulary().parties_by_word
    party_word_by_letter = {"D": "democratic", "R": "republican"}
    return [
        party_word_by_letter.get(party_letter_by_word.get(word, ""), word)
        if len(word) > 1
        else word
        for word in fold.fold_name(post_name)
    ]


def _find_leaders(
    db: Database, said_words: frozenset[str], said_years: set[str]
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    if not said_words:
        return
    rows = db.execute(
        """SELECT id, record FROM legislators
           WHERE status = 'active' AND record ->> 'leadership' <> '[]'"""
    )
    for row in rows:
        legislator = from_json(row["record"])
        for leadership_post in reversed(legislator["leadership"]):
            if not _is_post_named(said_words, leadership_post["title"], legislator):
                continue
            first_day, last_day = leadership_post.get("start") or "", leadership_post.get("end")
            is_in_said_year = any(
                first_day[:4] <= year <= (last_day or "9999")[:4] for year in said_years
            )
            if said_years and not is_in_said_year:
                continue
            holder_score = (
                1.0 if is_in_said_year or (not said_years and last_day is None) else _PAST_SCORE
            )
            reason = f"{leadership_post['title']}, {first_day or '?'} to {last_day or 'now'}"
            yield row["id"], holder_score, reason, legislator
            break


def _is_post_named(
    said_words: frozenset[str], post_title: str, legislator: Mapping[str, Any]
) -> bool:
    """Return whether the words are a title, whose chamber or side may go without saying."""
    title_words = frozenset(fold.fold_name(post_title))
    party_words = frozenset(_PARTY_WORDS_BY_LETTER.get(legislator.get("party") or "", ()))
    unsaid_words, unexplained_words = title_words - said_words, said_words - title_words
    optional_words = _CHAMBERS | (_PARTY_SIDES if unexplained_words & party_words else frozenset())
    return (
        unexplained_words <= party_words
        and unsaid_words <= optional_words
        and bool(said_words & title_words - _CHAMBERS)
    )


def _find_chairs(
    db: Database, committee_id: str, role: str
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    """Yield the members with this role in the newest roster of a committee."""
    rows: Sequence[Any] = db.execute(
        """SELECT l.id, l.record, m.congress, m.record ->> 'role' AS role,
                  c.record ->> 'title' AS committee
           FROM committee_memberships m JOIN legislators l ON l.id = m.bioguide_id
                JOIN committees c ON c.id = m.committee_id
           WHERE m.committee_id = ? AND m.status = 'active' AND m.record ->> 'role' LIKE ?
             AND m.congress = (SELECT max(congress) FROM committee_memberships
                               WHERE committee_id = ? AND status = 'active')
           ORDER BY m.rank NULLS FIRST""",
        (committee_id, f"{role}%", committee_id),
    ).fetchall()
    for row in rows:
        congress_ordinal = format_ordinal(row["congress"])
        reason = f"{row['role']}, {row['committee']}, {congress_ordinal} Congress"
        yield row["id"], 1.0, reason, from_json(row["record"])
