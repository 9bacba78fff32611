"""How often a retriever picks the right tool from the descriptions alone, and where it does not."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.table import Table
from tests.support.routing import (
    AMONG_THREE,
    FIRST,
    HELD_OUT,
    REASONS,
    TUNING,
    Routed,
    compare_listings,
    read_questions,
    route_questions,
    share,
)


def tables() -> Iterator[Table]:
    """The shares, then every miss of the held-out questions with its reason."""
    with tempfile.TemporaryDirectory() as folder:
        held_out = route_questions(Path(folder), read_questions(HELD_OUT))
        tuning = route_questions(Path(folder), read_questions(TUNING))
    yield Table(
        "Routing: the right tool from the listing alone",
        ("questions", "how many", "first", "among three"),
        (*_render_shares("held out", held_out), *_render_shares("tuning", tuning)),
        f"Over {len(tuning[0].order)} tools. {_render_verdict(held_out)} See docs/routing.md.",
    )
    yield _compare_listings()
    if held_out:
        yield Table(
            "Routing: the misses of the held-out questions",
            ("question", "tool", "place", "picked instead", "because"),
            tuple(_render_miss(routed) for routed in held_out if routed.place > 1),
            "; ".join(f"*{word}*: {reason}" for word, reason in REASONS.items()) + ".",
        )


def _compare_listings() -> Table:
    """What each listing costs in tokens, and how often the right tool is on it and is picked."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            (
                label,
                str(listing.tool_count),
                f"{listing.input_tokens:,}",
                f"{listing.all_tokens:,}",
                f"{listing.covered:.3f}",
                f"{share(listing.routed, 1) * listing.covered:.3f}",
                f"{share(listing.routed, 3) * listing.covered:.3f}",
            )
            for label, listing in compare_listings(Path(folder), read_questions(HELD_OUT)).items()
        ]
    return Table(
        "Routing: listings of the face of all bases",
        ("listing", "tools", "tokens", "with output schemas", "has the tool", "first", "in three"),
        tuple(rows),
        "The held-out questions; a token is four characters. *Own base* is `/mcp?bases=` with the "
        "base of the question's tool, averaged over the questions.",
    )


def _render_verdict(held_out: Sequence[Routed]) -> str:
    wanted = f"Wanted of held-out questions: first {FIRST:.2f}, among three {AMONG_THREE:.2f}"
    if not held_out:
        return f"{wanted}; there are none now."
    are_met = (share(held_out, 1) >= FIRST, share(held_out, 3) >= AMONG_THREE)
    first, three = ("met" if is_met else "**missed**" for is_met in are_met)
    return f"{wanted}: the first {first}, the second {three}."


def _render_shares(name: str, all_routed: Sequence[Routed]) -> Iterator[tuple[str, ...]]:
    """The shares of a set of questions, then of each base's."""
    bases = sorted({routed.base for routed in all_routed})
    groups = {
        f"{name}, {base}": [routed for routed in all_routed if routed.base == base]
        for base in bases
    }
    for label, group in {name: all_routed, **groups}.items() if all_routed else ():
        yield label, str(len(group)), f"{share(group, 1):.3f}", f"{share(group, 3):.3f}"


def _render_miss(routed: Routed) -> tuple[str, ...]:
    asked = routed.asked
    return (
        asked.question,
        f"`{asked.tool}`",
        str(routed.place),
        f"`{routed.order[0]}`",
        routed.reason,
    )
