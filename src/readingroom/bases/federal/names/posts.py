"""Who holds a post: leaders of the chambers, chairs of committees, a state's senior senator.

Also who sits for a state that is one district.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.congress import (
    format_ordinal,
    get_congress_on,
    get_first_day_of_congress,
)
from readingroom.core.clock import now
from readingroom.storage.database import Database

CommitteeFinder = Callable[[str], Sequence[str]]
"""Returns the ids of the committees that a text names: `Appropriations` is one of each chamber."""

_CHAMBER_WORDS = frozenset(("house", "senate"))
_PARTY_SIDE_WORDS = frozenset(("majority", "minority"))
_FILLER_WORDS = frozenset(
    ("congress", "current", "during", "member", "now", "present", "us", "united", "states")
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
_CONGRESS_PATTERN = re.compile(r"\b(\d{1,3})(?:st|nd|rd|th)\s+congress\b", re.I)
_YEAR_PATTERN = re.compile(r"\b(?:1[789]|20)\d\d\b")
_FORMER_PATTERN = re.compile(r"\b(?:former|previous|past|ex)\b", re.I)
_ROLE_BY_WORD = {
    **dict.fromkeys(("chair", "chairman", "chairwoman", "chairperson", "chairs"), "Chair"),
    "ranking": "Ranking",
}


@dataclass(frozen=True, slots=True)
class PostTime:
    """The time for which a post is asked."""

    first_day: str
    end_day: str
    """The day on which it is over."""
    congress: int | None
    label: str
    is_former: bool = False
    """Whether it is any time before now."""

    def has_days_of(self, held_from: str, held_until: str | None) -> bool:
        """Return whether it has days of a post; nothing is known of days to come."""
        if self.is_former:
            return held_until is not None
        today = now().isoformat()[:10]
        return held_from < self.end_day and self.first_day < (held_until or today)

    def is_covered_by(self, held_spans: Iterable[tuple[str, str | None]]) -> bool:
        """Return whether somebody held a post all the time, but for days."""
        if self.is_former:
            return False
        today = now().isoformat()[:10]
        covered_until = self.first_day
        for held_from, held_until in sorted(held_spans, key=lambda span: span[0]):
            if not held_from or _count_days(covered_until, held_from) > _MAX_DAYS_BETWEEN_TERMS:
                break
            covered_until = max(covered_until, held_until or today)
        return _count_days(covered_until, min(self.end_day, today)) <= _MAX_DAYS_BETWEEN_TERMS


def _count_days(first_day: str, later_day: str) -> int:
    return (date.fromisoformat(later_day) - date.fromisoformat(first_day)).days


@dataclass(frozen=True, slots=True)
class _NamedPost:
    """A post as a text names it, without the time."""

    words: tuple[str, ...]
    time: PostTime | None

    @property
    def distinctive_words(self) -> frozenset[str]:
        return frozenset(self.words) - _FILLER_WORDS

    @property
    def committee_role(self) -> str | None:
        role_name = next((_ROLE_BY_WORD[word] for word in self.words if word in _ROLE_BY_WORD), "")
        return ("Vice " if "vice" in self.words else "") + role_name if role_name else None

    def find_committee_ids(self, find_committee_ids: CommitteeFinder) -> Sequence[str]:
        """Return the committees whose chair or ranking member it is."""
        committee_name = " ".join(
            word for word in self.words if word not in {*_ROLE_BY_WORD, *_FILLER_WORDS, "vice"}
        )
        return find_committee_ids(committee_name) if self.committee_role and committee_name else ()


def find_post_holders(
    db: Database, post_name: str, find_committee_ids: CommitteeFinder
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    """Yield who holds or held the post that a text names: id, score, reason and record."""
    named_post = _parse_post(post_name)
    yield from _find_leaders(db, named_post.distinctive_words, named_post.time)
    if named_post.time is None:
        yield from _find_seat_holders(db, post_name)
    for committee_id in named_post.find_committee_ids(find_committee_ids):
        assert named_post.committee_role is not None
        yield from _find_chairs(db, committee_id, named_post.committee_role, named_post.time)


def is_post_of_a_time(db: Database, post_name: str, find_committee_ids: CommitteeFinder) -> bool:
    """Return whether a text names a post and a time: whoever did not hold it then is no answer."""
    named_post = _parse_post(post_name)
    return named_post.time is not None and (
        any(_find_leaders(db, named_post.distinctive_words, None))
        or bool(named_post.find_committee_ids(find_committee_ids))
    )


def describe_unloaded_time(
    db: Database, post_name: str, find_committee_ids: CommitteeFinder
) -> str | None:
    """Return what is not loaded of the time for which a post is asked; None if nothing is asked."""
    named_post = _parse_post(post_name)
    if named_post.time is None:
        return None
    if committee_ids := named_post.find_committee_ids(find_committee_ids):
        return _describe_unloaded_rosters(db, committee_ids, named_post.time)
    if not any(_find_leaders(db, named_post.distinctive_words, None)):
        return None
    held_spans = [
        (held_post.get("start") or "", held_post.get("end"))
        for _, _, _, legislator_fields in _find_leaders(db, named_post.distinctive_words, None)
        for held_post in legislator_fields["leadership"]
        if _is_post_named(named_post.distinctive_words, held_post["title"], legislator_fields)
    ]
    if named_post.time.is_covered_by(held_spans):
        return None
    return (
        "Posts are known of the members in the loaded list alone: whoever else held this one "
        f"{named_post.time.label} is not loaded here."
    )


def _describe_unloaded_rosters(
    db: Database, committee_ids: Sequence[str], post_time: PostTime
) -> str | None:
    congress_rows = db.execute(
        f"""SELECT DISTINCT congress FROM committee_memberships WHERE status = 'active'
            AND committee_id IN ({", ".join("?" * len(committee_ids))}) ORDER BY congress""",
        tuple(committee_ids),
    )
    loaded_congresses = [congress_row["congress"] for congress_row in congress_rows]
    is_loaded = (
        len(loaded_congresses) > 1
        if post_time.is_former
        else post_time.congress in loaded_congresses
    )
    if is_loaded:
        return None
    loaded_text = ", ".join(format_ordinal(congress) for congress in loaded_congresses)
    return f"Who held this post {post_time.label} is not loaded here: of the committee " + (
        f"the rosters of the {loaded_text} Congress are." if loaded_text else "no roster is."
    )


def _parse_post(post_name: str) -> _NamedPost:
    """Return the words of a post, and the time that a text says beside it."""
    post_time = find_post_time(post_name)
    for time_pattern in (_CONGRESS_PATTERN, _YEAR_PATTERN, _FORMER_PATTERN):
        post_name = time_pattern.sub(" ", post_name)
    return _NamedPost(tuple(_list_post_words(post_name)), post_time)


def find_post_time(post_name: str) -> PostTime | None:
    """Return the time that a text says: a Congress, a year, or any time before now."""
    if congress_match := _CONGRESS_PATTERN.search(post_name):
        congress = int(congress_match[1])
        return PostTime(
            get_first_day_of_congress(congress).isoformat(),
            get_first_day_of_congress(congress + 1).isoformat(),
            congress,
            f"in the {format_ordinal(congress)} Congress",
        )
    if year_match := _YEAR_PATTERN.search(post_name):
        year = int(year_match[0])
        # Until 3 January of an odd year the Congress before sits.
        return PostTime(
            f"{year}-01-03", f"{year + 1}-01-01", get_congress_on(f"{year}-12-31"), f"in {year}"
        )
    if _FORMER_PATTERN.search(post_name):
        return PostTime("", "", None, "before", is_former=True)
    return None


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
    db: Database, distinctive_words: frozenset[str], post_time: PostTime | None
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    if not distinctive_words:
        return
    leader_rows = db.execute(
        """SELECT id, record FROM legislators
           WHERE status = 'active' AND record ->> 'leadership' <> '[]'"""
    ).fetchall()
    for leader_row in leader_rows:
        legislator_fields = from_json(leader_row["record"])
        held_posts = [
            leadership_post
            for leadership_post in reversed(legislator_fields["leadership"])
            if _is_post_named(distinctive_words, leadership_post["title"], legislator_fields)
        ]
        is_held_now = any(held_post.get("end") is None for held_post in held_posts)
        if is_held_now and post_time and post_time.is_former:
            continue
        for held_post in held_posts:
            first_day, last_day = held_post.get("start") or "", held_post.get("end")
            if post_time and not post_time.has_days_of(first_day, last_day):
                continue
            holder_score = 1.0 if post_time or last_day is None else _UNSURE_HOLDER_SCORE
            reason = f"{held_post['title']}, {first_day or '?'} to {last_day or 'now'}"
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
    db: Database, committee_id: str, committee_role: str, post_time: PostTime | None
) -> Iterator[tuple[str, float, str, dict[str, Any]]]:
    """Yield the members with this role in the newest roster of a committee, or that of a time."""
    chair_rows: Sequence[Any] = db.execute(
        """SELECT l.id, l.record, m.congress, m.record ->> 'role' AS role,
                  c.record ->> 'title' AS committee,
                  (SELECT max(congress) FROM committee_memberships
                   WHERE committee_id = ? AND status = 'active') AS newest_congress
           FROM committee_memberships m JOIN legislators l ON l.id = m.bioguide_id
                JOIN committees c ON c.id = m.committee_id
           WHERE m.committee_id = ? AND m.status = 'active' AND m.record ->> 'role' LIKE ?
           ORDER BY m.congress DESC, m.rank NULLS FIRST""",
        (committee_id, committee_id, f"{committee_role}%"),
    ).fetchall()
    holder_ids_now = {
        chair_row["id"]
        for chair_row in chair_rows
        if chair_row["congress"] == chair_row["newest_congress"]
    }
    for chair_row in chair_rows:
        is_newest = chair_row["congress"] == chair_row["newest_congress"]
        if post_time is None:
            is_asked_for = is_newest
        elif post_time.is_former:
            is_asked_for = chair_row["id"] not in holder_ids_now
        else:
            is_asked_for = chair_row["congress"] == post_time.congress
        if is_asked_for:
            congress_ordinal = format_ordinal(chair_row["congress"])
            reason = f"{chair_row['role']}, {chair_row['committee']}, {congress_ordinal} Congress"
            yield chair_row["id"], 1.0, reason, from_json(chair_row["record"])
