"""How often a retriever picks the right tool from the descriptions alone, and where it does not."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.table import Table
from tests.routing import HELD_OUT, REASONS, TUNING, Routed, questions, routed, share


def tables() -> Iterator[Table]:
    """The shares, then every miss of the held-out questions with its reason."""
    with tempfile.TemporaryDirectory() as folder:
        held_out = routed(Path(folder), questions(HELD_OUT))
        tuning = routed(Path(folder), questions(TUNING))
    bases = sorted({one.base for one in held_out})
    groups = {
        "held out": held_out,
        **{f"held out, {base}": [one for one in held_out if one.base == base] for base in bases},
        "tuning": tuning,
    }
    yield Table(
        "Routing: the right tool from the listing alone",
        ("questions", "how many", "first", "among three"),
        tuple(_row(name, group) for name, group in groups.items()),
        f"Over {len(held_out[0].order)} tools. Wanted of the held-out questions: 0.65 and 0.90, "
        "the second **missed**; see docs/routing.md.",
    )
    yield Table(
        "Routing: the misses of the held-out questions",
        ("question", "tool", "place", "picked instead", "because"),
        tuple(_miss(one) for one in held_out if one.place > 1),
        "; ".join(f"*{word}*: {reason}" for word, reason in REASONS.items()) + ".",
    )


def _row(name: str, group: Sequence[Routed]) -> tuple[str, ...]:
    return name, str(len(group)), f"{share(group, 1):.3f}", f"{share(group, 3):.3f}"


def _miss(one: Routed) -> tuple[str, ...]:
    asked = one.asked
    return asked.question, f"`{asked.tool}`", str(one.place), f"`{one.order[0]}`", one.reason
