"""How long a search over all bases takes beside another version, in turn on the same machine.

    python -m benchmarks.engine.desk_latency OURS_URL OURS_PID OTHER_URL OTHER_PID

Two servers of their samples are running; both are asked the same 100 new questions, one after the
other. Prints p50 and p95 of the wall time, the processor time of a question, and the ratios.
"""

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.beside.client import HttpClient
from benchmarks.engine.corpus import make_questions
from benchmarks.server.wires import LEGACY, Message

_QUESTIONS = 100
_WARM_UP = 5  # questions before those that count


class AskedServer:
    """A running server, and what its answers took."""

    def __init__(self, url: str, pid: int) -> None:
        self._client = HttpClient(url)
        self._session = self._client.open_session("/mcp")
        self._pid = pid
        self.wall_seconds: list[float] = []
        self.cpu_seconds: list[float] = []

    def ask(self, question: str) -> None:
        """Search for a question and note what it took."""
        message = Message("tools/call", {"name": "search", "arguments": {"query": question}}, 1)
        cpu_before, started = self._read_cpu_seconds(), time.perf_counter()
        self._client.send_message("/mcp", message, LEGACY, self._session)
        self.wall_seconds.append(time.perf_counter() - started)
        self.cpu_seconds.append(self._read_cpu_seconds() - cpu_before)

    def _read_cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def find_percentile(seconds: Sequence[float], percent: int) -> float:
    """Return the value that so many per cent are not above, in milliseconds."""
    return 1000 * sorted(seconds)[len(seconds) * percent // 100]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ours_url")
    parser.add_argument("ours_pid", type=int)
    parser.add_argument("other_url")
    parser.add_argument("other_pid", type=int)
    options = parser.parse_args()
    ours = AskedServer(options.ours_url, options.ours_pid)
    other = AskedServer(options.other_url, options.other_pid)
    for question in make_questions(_QUESTIONS + _WARM_UP):
        ours.ask(question)
        other.ask(question)
    figures = []
    for server in (ours, other):
        wall, cpu = server.wall_seconds[_WARM_UP:], server.cpu_seconds[_WARM_UP:]
        figures.append((find_percentile(wall, 50), find_percentile(wall, 95), sum(cpu) / len(cpu)))
        print(f"p50 {figures[-1][0]:.0f} ms, p95 {figures[-1][1]:.0f} ms, ", end="")
        print(f"processor {1000 * figures[-1][2]:.0f} ms")
    ratios = [one / two for one, two in zip(*figures, strict=True)]
    print("ours to the other: p50 {:.2f}, p95 {:.2f}, processor {:.2f}".format(*ratios))
    paired = [a / b for a, b in zip(ours.wall_seconds, other.wall_seconds, strict=True)]
    print(f"median of the ratios, question by question: {median(paired):.2f}")


if __name__ == "__main__":
    main()
