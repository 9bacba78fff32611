"""How parties and members voted: tallies of a roll call, agreement with the party, who votes alike.

Everything is counted over the votes that are loaded, and says how many these are and of which days.
"""

import math
from fractions import Fraction
from typing import Any

from readingroom.storage.database import Database, Row

_VOTE_SIDE_SQL = "coalesce({votes}.standard_position, 'other')"
_VOTE_SIDES = ("yea", "present", "not_voting", "nay")
_MIN_SHARED_VOTES = 2
"""Fewer votes together say nothing of two members."""
_VOTE_IS_ACTIVE_SQL = "vote_id NOT IN (SELECT id FROM roll_call_votes WHERE status <> 'active')"


def count_sides_by_party(db: Database, vote_id: str) -> dict[str, dict[str, int]]:
    """Return how many of each party voted how, the largest party first; empty without members."""
    tally_rows = db.execute(
        f"""SELECT coalesce(party, '?') AS party, {_VOTE_SIDE_SQL.format(votes="m")} AS side,
                   count(*) AS members
            FROM member_votes m WHERE vote_id = ? GROUP BY 1, 2""",
        (vote_id,),
    ).fetchall()
    side_counts_by_party: dict[str, dict[str, int]] = {}
    for tally_row in tally_rows:
        side_counts_by_party.setdefault(tally_row["party"], {})[tally_row["side"]] = tally_row[
            "members"
        ]
    party_names_largest_first = sorted(
        side_counts_by_party,
        key=lambda party_name: (-sum(side_counts_by_party[party_name].values()), party_name),
    )
    return {
        party_name: dict(sorted(side_counts_by_party[party_name].items(), reverse=True))
        for party_name in party_names_largest_first
    }


def read_party_tallies(db: Database, roll_call_fields: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return how many of each party voted how: as printed, else of the members that are loaded."""
    if not are_party_totals_whole(roll_call_fields):
        return count_sides_by_party(db, roll_call_fields["id"])
    printed_side_counts_by_party = {
        party_totals["party"]: {
            vote_side: party_totals[vote_side]
            for vote_side in _VOTE_SIDES
            if party_totals[vote_side]
        }
        for party_totals in roll_call_fields["party_totals"]
    }
    return {
        party_name: printed_side_counts_by_party[party_name]
        for party_name in sorted(
            printed_side_counts_by_party,
            key=lambda party_name: (
                -sum(printed_side_counts_by_party[party_name].values()),
                party_name,
            ),
        )
        if printed_side_counts_by_party[party_name]
    }


def are_party_totals_whole(roll_call_fields: dict[str, Any]) -> bool:
    """Return whether the totals by party add up to those of the vote: not of some members only."""
    total_by_side = roll_call_fields.get("totals") or {}
    # Where members vote for a person, they are in no total.
    if not _count_voters(roll_call_fields) or _count_voters(roll_call_fields) < (
        roll_call_fields.get("recorded") or 0
    ):
        return False
    return all(
        sum(party_totals[vote_side] for party_totals in roll_call_fields.get("party_totals") or ())
        == (total_by_side.get(vote_side) or 0)
        for vote_side in _VOTE_SIDES
    )


def _count_voters(roll_call_fields: dict[str, Any]) -> int:
    return sum(
        (roll_call_fields.get("totals") or {}).get(vote_side) or 0 for vote_side in _VOTE_SIDES
    )


def describe_missing_voters(roll_call_fields: dict[str, Any]) -> str | None:
    """Return of how many members a roll call's votes are loaded, unless it is of all."""
    voter_count = _count_voters(roll_call_fields)
    recorded_count = roll_call_fields.get("recorded") or 0
    if not recorded_count:
        return "How each member voted is not loaded here."
    if recorded_count >= voter_count:
        return None
    return f"How {recorded_count} of {voter_count} members voted is loaded here."


def summarize_member_votes(
    db: Database, bioguide_id: str, congress: int | None
) -> list[dict[str, Any]]:
    """Return by Congress how often a member voted, missed votes, and agreed with the own party.

    The party's side is that of most of its members who voted yea or nay; a tie has none.
    """
    congress_condition, congress_values = _build_congress_condition(congress)
    summary_rows = db.execute(
        f"""WITH own AS (
                SELECT m.vote_id, m.congress, m.party, substr(m.sorted_at, 1, 10) AS day,
                       {_VOTE_SIDE_SQL.format(votes="m")} AS side
                FROM member_votes m
                WHERE bioguide_id = ? AND {_VOTE_IS_ACTIVE_SQL}{congress_condition}),
            party_side AS (
                SELECT own.vote_id, sum(CASE WHEN {_VOTE_SIDE_SQL.format(votes="p")} = 'yea' THEN 1
                                             WHEN {_VOTE_SIDE_SQL.format(votes="p")} = 'nay' THEN -1
                                             ELSE 0 END) AS balance
                FROM own JOIN member_votes p ON p.vote_id = own.vote_id AND p.party = own.party
                GROUP BY own.vote_id)
            SELECT congress, max(party) AS party, count(*) AS votes, min(day) AS first_day,
                   max(day) AS last_day,
                   sum(CASE WHEN side = 'not_voting' THEN 1 ELSE 0 END) AS missed,
                   sum(CASE WHEN side IN ('yea', 'nay') AND balance <> 0 THEN 1 ELSE 0 END)
                       AS compared,
                   sum(CASE WHEN (side = 'yea' AND balance > 0) OR (side = 'nay' AND balance < 0)
                            THEN 1 ELSE 0 END) AS with_party
            FROM own LEFT JOIN party_side USING (vote_id)
            GROUP BY congress ORDER BY congress DESC""",
        (bioguide_id, *congress_values),
    )
    return [_build_voting_summary(summary_row) for summary_row in summary_rows]


def _build_voting_summary(summary_row: Row) -> dict[str, Any]:
    compared_count, with_party_count = summary_row["compared"] or 0, summary_row["with_party"] or 0
    return {
        "congress": summary_row["congress"],
        "party": summary_row["party"],
        "votes": summary_row["votes"],
        "from": summary_row["first_day"],
        "to": summary_row["last_day"],
        "missed": summary_row["missed"],
        "missed_percent": _compute_percent(summary_row["missed"], summary_row["votes"]),
        "compared_with_party": compared_count,
        "with_party": with_party_count,
        "with_party_percent": _compute_percent(with_party_count, compared_count),
    }


def list_members_voting_alike(
    db: Database, bioguide_id: str, congress: int | None, max_results: int, offset: int
) -> tuple[list[dict[str, Any]], int]:
    """Return who voted most often as a member did, of those who voted together, and how many.

    Only votes in which both said yea or nay are compared.
    """
    congress_condition, congress_values = _build_congress_condition(congress)
    member_rows = db.execute(
        f"""WITH own AS (
                SELECT m.vote_id, {_VOTE_SIDE_SQL.format(votes="m")} AS side, m.congress,
                       substr(m.sorted_at, 1, 10) AS day
                FROM member_votes m
                WHERE bioguide_id = ? AND {_VOTE_IS_ACTIVE_SQL}{congress_condition})
            SELECT * FROM (SELECT o.bioguide_id AS bioguide_id, max(o.name) AS name,
                   max(o.party) AS party,
                   max(o.state) AS state, count(*) AS shared,
                   sum(CASE WHEN {_VOTE_SIDE_SQL.format(votes="o")} = own.side THEN 1 ELSE 0 END)
                       AS alike,
                   min(own.day) AS first_day, max(own.day) AS last_day
            FROM own JOIN member_votes o ON o.vote_id = own.vote_id
            WHERE o.bioguide_id <> ? AND own.side IN ('yea', 'nay')
              AND {_VOTE_SIDE_SQL.format(votes="o")} IN ('yea', 'nay')
            GROUP BY o.bioguide_id HAVING count(*) >= {_MIN_SHARED_VOTES}) AS compared
            ORDER BY 1.0 * alike / shared DESC, shared DESC, bioguide_id""",
        (bioguide_id, *congress_values, bioguide_id),
    ).fetchall()
    similar_members = [
        {
            "bioguide_id": member_row["bioguide_id"],
            "name": member_row["name"],
            "party": member_row["party"],
            "state": member_row["state"],
            "votes_together": member_row["shared"],
            "alike": member_row["alike"],
            "alike_percent": _compute_percent(member_row["alike"], member_row["shared"]),
            "from": member_row["first_day"],
            "to": member_row["last_day"],
        }
        for member_row in member_rows[offset : offset + max_results]
    ]
    return similar_members, len(member_rows)


def summarize_roll_call(db: Database, roll_call_fields: dict[str, Any]) -> dict[str, Any]:
    """Return what was voted on, how it ended, how many votes it took, and how each party voted."""
    total_by_side = roll_call_fields.get("totals") or {}
    # Of those who voted: members who were present or absent count for no majority.
    voter_count = (total_by_side.get("yea") or 0) + (total_by_side.get("nay") or 0)
    return {
        **{
            field_name: roll_call_fields.get(field_name)
            for field_name in ("title", "question", "result", "totals")
        },
        "majority_required": roll_call_fields.get("majority_required"),
        "needed": count_votes_needed(roll_call_fields.get("majority_required") or "", voter_count),
        "by_party": read_party_tallies(db, roll_call_fields),
    }


def count_votes_needed(required_majority: str, voter_count: int) -> int | None:
    """Return how many votes it took: more than a half, or at least another share such as `2/3`.

    None for a majority that is not stated as a share.
    """
    numerator_text, slash_mark, denominator_text = required_majority.partition("/")
    if not (
        slash_mark
        and numerator_text.isdecimal()
        and denominator_text.isdecimal()
        and int(denominator_text)
    ):
        return None
    # Not by floats, which cannot write two thirds.
    required_share = Fraction(int(numerator_text), int(denominator_text))
    return (
        voter_count // 2 + 1
        if required_share == Fraction(1, 2)
        else math.ceil(required_share * voter_count)
    )


def describe_roll_call(
    roll_call_fields: dict[str, Any], side_counts_by_party: dict[str, dict[str, int]]
) -> str:
    """Return a roll call in words: its result, its totals, and how each party voted."""
    total_by_side = roll_call_fields.get("totals") or {}
    description_lines = [
        f"{roll_call_fields['question']}: "
        f"{roll_call_fields.get('result') or 'no result is stated'}",
        f"Yea {total_by_side.get('yea', 0)}, nay {total_by_side.get('nay', 0)}, present "
        f"{total_by_side.get('present', 0)}, not voting {total_by_side.get('not_voting', 0)}.",
    ]
    recorded_count = roll_call_fields.get("recorded") or 0
    if are_party_totals_whole(roll_call_fields):
        missing_voters_note = describe_missing_voters(roll_call_fields)
        description_lines.append(
            f"By party, as printed ({missing_voters_note.rstrip('.')}):"
            if missing_voters_note
            else "By party:"
        )
    elif side_counts_by_party:
        description_lines.append(
            f"By party, of the {recorded_count} members whose votes are loaded here:"
        )
    for party_name, count_by_side in side_counts_by_party.items():
        side_counts_text = ", ".join(
            f"{vote_side.replace('_', ' ')} {vote_count}"
            for vote_side, vote_count in count_by_side.items()
        )
        description_lines.append(f"{party_name}: {side_counts_text}")
    if not side_counts_by_party:
        description_lines.append("How each member voted is not loaded here.")
    return "\n".join(description_lines)


def _build_congress_condition(congress: int | None) -> tuple[str, tuple[int, ...]]:
    return ("", ()) if congress is None else (" AND m.congress = ?", (congress,))


def _compute_percent(numerator: int | None, denominator: int | None) -> float | None:
    return round(100 * (numerator or 0) / denominator, 1) if denominator else None
