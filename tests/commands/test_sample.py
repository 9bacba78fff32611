"""The load of the sample: bases beside each other, each in its order, and vectors last."""

import threading

import pytest

from readingroom.commands import sample
from readingroom.commands.sample import SampleLoader
from readingroom.core.errors import InternalError
from readingroom.core.progress import ReportProgressSync
from readingroom.protocol.sample import SampleStep
from tests.support.processes import HANG_SECONDS


class Steps:
    """Makes steps that note their titles as they end, and keeps what was announced."""

    def __init__(self) -> None:
        self.ended_titles: list[str] = []
        self.announcements: list[str] = []

    def make(self, title: str, is_last: bool = False, turn: int = 0) -> SampleStep:
        return SampleStep(title, lambda _: self.ended_titles.append(title), turn, is_last)

    def load(self, *steps_by_base: list[SampleStep]) -> bool:
        return SampleLoader(steps_by_base, self.announcements.append).load_all_steps()


@pytest.mark.parametrize("core_count", [1, 2])
def test_vectors_come_last_and_the_steps_of_a_base_in_their_order(
    monkeypatch: pytest.MonkeyPatch, core_count: int
) -> None:
    monkeypatch.setattr(sample, "count_cores", lambda: core_count)
    steps = Steps()
    assert steps.load(
        [steps.make("scan", turn=1), steps.make("plan", turn=1)],
        [steps.make("records"), steps.make("vectors", is_last=True)],
        [steps.make("first policy"), steps.make("second policy")],
    )
    ended = steps.ended_titles
    assert ended[-1] == "vectors"
    assert ended.index("first policy") < ended.index("second policy")
    assert ended.index("scan") < ended.index("plan")
    counts = [announcement.partition(":")[0] for announcement in steps.announcements]
    assert counts == [f"sample {count} of 6" for count in range(1, 7)]
    if core_count == 1:
        by_turn = ["records", "first policy", "second policy", "scan", "plan", "vectors"]
        assert ended == by_turn


def test_two_bases_load_at_once_on_two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "count_cores", lambda: 2)
    both_are_loading = threading.Barrier(2)

    def meet(report_progress: ReportProgressSync) -> None:
        both_are_loading.wait(HANG_SECONDS)

    assert Steps().load([SampleStep("one base", meet)], [SampleStep("another", meet)])


@pytest.mark.parametrize("error", [InternalError("full"), ValueError("a bug")], ids=["told", "bug"])
def test_a_step_that_fails_stops_no_other(error: Exception) -> None:
    def fail(report_progress: ReportProgressSync) -> None:
        raise error

    steps = Steps()
    vectors = steps.make("vectors", is_last=True)
    assert not steps.load(
        [SampleStep("bad", fail), steps.make("good"), vectors], [steps.make("other")]
    )
    assert sorted(steps.ended_titles) == ["good", "other", "vectors"]
