"""A measurement as people read it: a Markdown table, and the arithmetic of its columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Table:
    """One measurement: what was asked, the numbers, how they came about."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str

    def __str__(self) -> str:
        rule = ["---:" if title.startswith("median") else "---" for title in self.header]
        lines = [_render_line(row) for row in (self.header, rule, *self.rows)]
        return "\n".join([f"## {self.title}", "", *lines, "", self.note])


@dataclass(frozen=True)
class Ratio:
    """How many times one series is the other, round by round: neighbours share the noise."""

    of: Sequence[float]
    to: Sequence[float]

    @property
    def each(self) -> list[float]:
        return [left / right for left, right in zip(self.of, self.to, strict=True)]

    @property
    def middle(self) -> float:
        return median(self.each)

    def __str__(self) -> str:
        return f"{self.middle:.3f} ({min(self.each):.2f} to {max(self.each):.2f})"

    def against(self, target: float) -> str:
        """Whether the median keeps to the target."""
        return f"{'met' if self.middle <= target else '**missed**'} (at most {target:g})"


def _render_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
