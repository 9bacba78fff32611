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

CommitteeFinder = Callable[[str], Sequence[str]]
"""Returns the ids of the committees that a text names: `Appropriations` is one of each chamber."""

_CHAMBER_WORDS = frozenset(("house", "senate"))
_PARTY_SIDE_WORDS = frozenset(("majority", "minority"))
_FILLER_WORDS = frozenset(
    ("current", "former", "member", "now", "present", "us", "united", "states")
)
_PARTY_WORDS_BY_LETTER = {"D": ("democratic",), "R": ("republican",)}
_UNSURE_HOLDER_SCORE = 0.75
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


def find_post_holders(
    db: Database, post_name: str, find_committee_ids: CommitteeFinder
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    """Yield who holds or held the post that a text names: id, score, reason and record."""
    post_words = _list_post_words(post_name)
    written_years = {word for word in post_words if word.isdecimal() and len(word) == 4}
    distinctive_words = frozenset(post_words) - written_years - _FILLER_WORDS
    yield from _find_leaders(db, distinctive_words, written_years)
    yield from _find_seat_holders(db, post_name)
    committee_role = next(
        (_ROLE_BY_WORD[word] for word in post_words if word in _ROLE_BY_WORD), None
    )
    if committee_role:
        vice_prefix = "Vice " if "vice" in distinctive_words else ""
        committee_name = " ".join(
            word for word in post_words if word not in {*_ROLE_BY_WORD, *_FILLER_WORDS, "vice"}
        )
        for committee_id in find_committee_ids(committee_name) if committee_name else ():
            yield from _find_chairs(db, committee_id, vice_prefix + committee_role)


def _find_seat_holders(
    db: Database, post_name: str
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    """Yield who holds `the junior senator from Ohio`, `Alaska at large` or `AK-AL`."""
    folded_words = fold.fold_all_words(_POSSESSIVE_PATTERN.sub("", post_name))
    seat_words = [word for word in folded_words if word not in _FILLER_WORDS]
    code_by_state_words = fold.load_vocabulary().code_by_state_words
    # Written out, a state is several words at times: the longest run of words that is one.
    state_word_spans = sorted(
        (
            (start_index, end_index)
            for start_index in range(len(seat_words))
            for end_index in range(start_index + 1, len(seat_words) + 1)
            if tuple(seat_words[start_index:end_index]) in code_by_state_words
        ),
        key=lambda word_span: (word_span[0] - word_span[1], word_span[0]),
    )
    if not state_word_spans:
        return
    start_index, end_index = state_word_spans[0]
    state_code = code_by_state_words[tuple(seat_words[start_index:end_index])]
    words_besides_state = {*seat_words[:start_index], *seat_words[end_index:]}
    if len(rank_words := words_besides_state & _SENATOR_RANKS) == 1 and words_besides_state <= (
        _SENATOR_WORDS | _SENATOR_RANKS
    ):
        yield from _find_senators_of_rank(db, state_code, *rank_words)
    elif words_besides_state == {"al"} or {"at", "large"} <= words_besides_state <= _AT_LARGE_WORDS:
        yield from _find_members_at_large(db, state_code)


def _find_senators_of_rank(
    db: Database, state_code: str, rank_word: str
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    """Yield the senator who has served longer without a break, or the other; both in a tie."""
    senator_rows = db.execute(
        """SELECT id, record FROM legislators
           WHERE status = 'active' AND state = ? AND chamber = 'senate' AND current = ?""",
        (state_code, True),
    ).fetchall()
    ids_and_senators = [
        (senator_row["id"], from_json(senator_row["record"])) for senator_row in senator_rows
    ]
    first_day_by_senator_id = {
        senator_id: _determine_first_senate_day(senator_fields)
        for senator_id, senator_fields in ids_and_senators
    }
    first_day_of_rank = (min if rank_word == "senior" else max)(
        first_day_by_senator_id.values(), default=""
    )
    is_rank_known = len(ids_and_senators) > 1 and len(set(first_day_by_senator_id.values())) > 1
    for senator_id, senator_fields in ids_and_senators:
        if first_day_by_senator_id[senator_id] == first_day_of_rank:
            reason = f"in the Senate since {first_day_of_rank}, {rank_word} senator of {state_code}"
            if not is_rank_known:
                reason = (
                    f"in the Senate since {first_day_of_rank}; "
                    f"the files do not say who is {rank_word}"
                )
            yield senator_id, 1.0 if is_rank_known else _UNSURE_HOLDER_SCORE, reason, senator_fields


def _determine_first_senate_day(senator_fields: Mapping[str, Any]) -> str:
    """Return when an unbroken service in the Senate began."""
    first_day_text = ""
    for office_term in reversed(senator_fields["terms"]):
        is_service_unbroken = (
            not first_day_text
            or (date.fromisoformat(first_day_text) - date.fromisoformat(office_term["end"])).days
            <= _MAX_DAYS_BETWEEN_TERMS
        )
        if office_term["chamber"] != "senate" or not is_service_unbroken:
            break
        first_day_text = office_term["start"]
    return first_day_text


def _find_members_at_large(
    db: Database, state_code: str
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    """Yield who sits or sat for the whole of a state in the House: its district is 0."""
    member_rows = db.execute(
        """SELECT id, record, current FROM legislators
           WHERE status = 'active' AND state = ? AND record ->> 'district' = '0'""",
        (state_code,),
    ).fetchall()
    for member_row in member_rows:
        # Of people whom only other records name, no list says whether they sit now.
        verb = {None: "named as sitting", False: "sat", True: "sits"}[
            None if member_row["current"] is None else bool(member_row["current"])
        ]
        reason = f"{verb} for {state_code} at large"
        yield (
            member_row["id"],
            1.0 if member_row["current"] else _UNSURE_HOLDER_SCORE,
            reason,
            from_json(member_row["record"]),
        )


def _list_post_words(post_name: str) -> list[str]:
    party_letter_by_word = fold.load_vocabulary().parties_by_word
    party_word_by_letter = {"D": "democratic", "R": "republican"}
    return [
        party_word_by_letter.get(party_letter_by_word.get(word, ""), word)
        if len(word) > 1
        else word
        for word in fold.fold_name(post_name)
    ]


def _find_leaders(
    db: Database, distinctive_words: frozenset[str], written_years: set[str]
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    if not distinctive_words:
        return
    leader_rows = db.execute(
        """SELECT id, record FROM legislators
           WHERE status = 'active' AND record ->> 'leadership' <> '[]'"""
    )
    for leader_row in leader_rows:
        legislator_fields = from_json(leader_row["record"])
        for leadership_post in reversed(legislator_fields["leadership"]):
            if not _is_post_named(distinctive_words, leadership_post["title"], legislator_fields):
                continue
            first_day, last_day = leadership_post.get("start") or "", leadership_post.get("end")
            is_held_in_written_year = any(
                first_day[:4] <= year_text <= (last_day or "9999")[:4]
                for year_text in written_years
            )
            if written_years and not is_held_in_written_year:
                continue
            holder_score = (
                1.0
                if is_held_in_written_year or (not written_years and last_day is None)
                else _UNSURE_HOLDER_SCORE
            )
            reason = f"{leadership_post['title']}, {first_day or '?'} to {last_day or 'now'}"
            yield leader_row["id"], holder_score, reason, legislator_fields
            break


def _is_post_named(
    distinctive_words: frozenset[str], post_title: str, legislator_fields: Mapping[str, Any]
) -> bool:
    """Return whether the words are a title, whose chamber or side may go without saying."""
    title_words = frozenset(fold.fold_name(post_title))
    party_words = frozenset(_PARTY_WORDS_BY_LETTER.get(legislator_fields.get("party") or "", ()))
    unwritten_words, unexplained_words = (
        title_words - distinctive_words,
        distinctive_words - title_words,
    )
    optional_words = _CHAMBER_WORDS | (
        _PARTY_SIDE_WORDS if unexplained_words & party_words else frozenset()
    )
    return (
        unexplained_words <= party_words
        and unwritten_words <= optional_words
        and bool(distinctive_words & title_words - _CHAMBER_WORDS)
    )


def _find_chairs(
    db: Database, committee_id: str, committee_role: str
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    """Yield the members with this role in the newest roster of a committee."""
    chair_rows: Sequence[Any] = db.execute(
        """SELECT l.id, l.record, m.congress, m.record ->> 'role' AS role,
                  c.record ->> 'title' AS committee
           FROM committee_memberships m JOIN legislators l ON l.id = m.bioguide_id
                JOIN committees c ON c.id = m.committee_id
           WHERE m.committee_id = ? AND m.status = 'active' AND m.record ->> 'role' LIKE ?
             AND m.congress = (SELECT max(congress) FROM committee_memberships
                               WHERE committee_id = ? AND status = 'active')
           ORDER BY m.rank NULLS FIRST""",
        (committee_id, f"{committee_role}%", committee_id),
    ).fetchall()
    for chair_row in chair_rows:
        congress_ordinal = format_ordinal(chair_row["congress"])
        reason = f"{chair_row['role']}, {chair_row['committee']}, {congress_ordinal} Congress"
        yield chair_row["id"], 1.0, reason, from_json(chair_row["record"])
