"""Who holds a post: leaders of the chambers, chairs of committees, a state's senior senator.

Also who sits for a state that is one district.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
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
_POSSESSIVE_PATTERN = re.compile(r"['\u2019]s\b")
_SENATOR_WORDS = frozenset(("of", "for", "from", "in", "sen", "senator", "state", "the"))
_SENATOR_RANKS = frozenset(("junior", "senior"))
_AT_LARGE_WORDS = frozenset(
    (
        *(
            "at",
            "cd",
            "congressional",
            "congressman",
            "congressperson",
            "congresswoman",
            "district",
        ),
        *("for", "from", "house", "in", "large", "member", "of", "rep", "representative", "s"),
        *("seat", "the"),
    )
)
_MAX_DAYS_BETWEEN_TERMS = 60
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
    yield from _find_holders_of_seats(db, post_name)
    role = next((_ROLE_BY_WORD[word] for word in post_words if word in _ROLE_BY_WORD), None)
    if role:
        vice_prefix = "Vice " if "vice" in said_words else ""
        committee_name = " ".join(
            word for word in post_words if word not in {*_ROLE_BY_WORD, *_FILLER_WORDS, "vice"}
        )
        for committee_id in find_committees(committee_name) if committee_name else ():
            yield from _find_chairs(db, committee_id, vice_prefix + role)


def _find_holders_of_seats(
    db: Database, post_name: str
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    """Yield who holds `the junior senator from Ohio`, `Alaska at large` or `AK-AL`."""
    folded_words = fold.fold_all_words(_POSSESSIVE_PATTERN.sub("", post_name))
    said_words = [word for word in folded_words if word not in _FILLER_WORDS]
    code_by_words = fold.load_vocabulary().codes_by_state_words
    # Written out, a state is several words at times: the longest run of words that is one.
    word_runs = sorted(
        (
            (start, end)
            for start in range(len(said_words))
            for end in range(start + 1, len(said_words) + 1)
            if tuple(said_words[start:end]) in code_by_words
        ),
        key=lambda word_run: (word_run[0] - word_run[1], word_run[0]),
    )
    if not word_runs:
        return
    start, end = word_runs[0]
    state_code = code_by_words[tuple(said_words[start:end])]
    other_words = {*said_words[:start], *said_words[end:]}
    if len(said_ranks := other_words & _SENATOR_RANKS) == 1 and other_words <= (
        _SENATOR_WORDS | _SENATOR_RANKS
    ):
        yield from _find_senators_of_rank(db, state_code, *said_ranks)
    elif other_words == {"al"} or {"at", "large"} <= other_words <= _AT_LARGE_WORDS:
        yield from _find_members_at_large(db, state_code)


def _find_senators_of_rank(
    db: Database, state_code: str, rank: str
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    """Yield the senator who has served longer without a break, or the other; both in a tie."""
    rows = db.execute(
        """SELECT id, record FROM legislators
           WHERE status = 'active' AND state = ? AND chamber = 'senate' AND current = ?""",
        (state_code, True),
    ).fetchall()
    senators = [(row["id"], from_json(row["record"])) for row in rows]
    first_days = {
        senator_id: _find_first_day_in_senate(senator) for senator_id, senator in senators
    }
    wanted_day = (min if rank == "senior" else max)(first_days.values(), default="")
    is_sure = len(senators) > 1 and len(set(first_days.values())) > 1
    for senator_id, senator in senators:
        if first_days[senator_id] == wanted_day:
            reason = f"in the Senate since {wanted_day}, {rank} senator of {state_code}"
            if not is_sure:
                reason = f"in the Senate since {wanted_day}; the files do not say who is {rank}"
            yield senator_id, 1.0 if is_sure else _PAST_SCORE, reason, senator


def _find_first_day_in_senate(senator: Mapping[str, Any]) -> str:
    """Return when an unbroken service in the Senate began."""
    first_day = ""
    for term in reversed(senator["terms"]):
        is_unbroken = (
            not first_day
            or (date.fromisoformat(first_day) - date.fromisoformat(term["end"])).days
            <= _MAX_DAYS_BETWEEN_TERMS
        )
        if term["chamber"] != "senate" or not is_unbroken:
            break
        first_day = term["start"]
    return first_day


def _find_members_at_large(
    db: Database, state_code: str
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    """Yield who sits or sat for the whole of a state in the House: its district is 0."""
    rows = db.execute(
        """SELECT id, record, current FROM legislators
           WHERE status = 'active' AND state = ? AND record ->> 'district' = '0'""",
        (state_code,),
    ).fetchall()
    for row in rows:
        reason = (
            f"sits for {state_code} at large"
            if row["current"]
            else f"sat for {state_code} at large"
        )
        yield row["id"], 1.0 if row["current"] else _PAST_SCORE, reason, from_json(row["record"])


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
