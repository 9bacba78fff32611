"""The chart of a roll call: how many of each party voted how."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from readingroom.bases.federal.query.votes import count_votes_needed
from readingroom.bases.federal.schema.records import MemberVote
from readingroom.web.charts import Chart, StackedRow, draw_stacked

_VOTE_POSITIONS = ("Yea", "Nay", "Present", "Not Voting")
_VOTE_POSITION_BY_SYNONYM = {"Aye": "Yea", "Yes": "Yea", "No": "Nay"}


def draw_vote_chart(
    member_votes: Sequence[MemberVote], vote_fields: Mapping[str, Any]
) -> Chart | None:
    """Return a bar for each party and one for all, and how many votes were needed."""
    if not member_votes:
        return None
    member_count_by_party = Counter(member_vote.party or "none" for member_vote in member_votes)
    party_rows = [StackedRow("All", count_positions(member_votes))]
    party_rows += [
        StackedRow(
            party_name,
            count_positions(
                [
                    member_vote
                    for member_vote in member_votes
                    if (member_vote.party or "none") == party_name
                ]
            ),
        )
        for party_name, _ in member_count_by_party.most_common()
    ]
    yea_count, nay_count = party_rows[0].counts[0], party_rows[0].counts[1]
    votes_needed = count_votes_needed(
        str(vote_fields.get("majority_required") or ""), yea_count + nay_count
    )
    chart_caption = (
        f"{vote_fields.get('result') or 'Counted'}: {yea_count} for, {nay_count} against"
    )
    chart_caption += f"; {votes_needed} were needed (the red line)." if votes_needed else "."
    return draw_stacked(party_rows, list(_VOTE_POSITIONS), chart_caption, "Party", votes_needed)


def count_positions(member_votes: Sequence[MemberVote]) -> list[int]:
    """Return how many members took each of the positions of the chart."""
    member_count_by_position = Counter(
        _VOTE_POSITION_BY_SYNONYM.get(member_vote.position, member_vote.position)
        for member_vote in member_votes
    )
    count_by_folded_position = {
        position_name.casefold(): member_count
        for position_name, member_count in member_count_by_position.items()
    }
    return [
        count_by_folded_position.get(position_name.casefold(), 0)
        for position_name in _VOTE_POSITIONS
    ]
