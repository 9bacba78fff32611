"""Runs the official MCP conformance suites against the test-only base, each with its baseline.

    python -m tests.conformance.run

A baseline names every scenario that may fail, with the reason. Anything else that fails, or only
warns, fails the run. So does an entry that did not fail: the suites themselves overlook an entry
whose scenario or check did not run.
"""

import http.client
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import node
from tests.support.processes import find_free_port

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
OUTPUT = ROOT / "build" / "conformance"

START_SECONDS = 120
STOP_SECONDS = 60
SUITE_SECONDS = 300

# How a suite ends that came to its end: content, or with one or both of the others.
VERDICTS = ("Baseline check passed", "Baseline is stale", "Unexpected failures detected")


@dataclass(frozen=True)
class Suite:
    """One release of the suite, on one revision of the protocol."""

    program: str
    version: str
    wire: str
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What its baseline and its results are called."""
        return f"{self.version}-{self.wire}"

    @property
    def baseline(self) -> Path:
        """The file that names what may fail."""
        return HERE / f"baseline-{self.name}.yml"


@dataclass(frozen=True)
class Outcome:
    """What one run of a suite said of its scenarios."""

    passed: int
    expected: list[str]
    unexpected: list[str]
    stale: list[str]

    @property
    def good(self) -> bool:
        """Whether the baseline tells the whole truth."""
        return not self.unexpected and not self.stale


SUITES = (
    Suite(node.CONFORMANCE_2025, "0.1.16", "2025-11-25"),
    Suite(node.CONFORMANCE_2026, "0.2.0-alpha.12", "2025-11-25", ("--spec-version", "2025-11-25")),
    Suite(node.CONFORMANCE_2026, "0.2.0-alpha.12", "2026-07-28", ("--spec-version", "2026-07-28")),
)


def main() -> int:
    """Run every suite against one server; 0 when all went as their baselines say."""
    with serve_test_base() as url:
        outcomes = [run(suite, url) for suite in SUITES]
    return 0 if all(outcome.good for outcome in outcomes) else 1


@contextmanager
def serve_test_base() -> Iterator[str]:
    """The MCP address of the test-only base, served on a free port for as long as it is needed."""
    port = find_free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.conformance.server", "--port", str(port)], cwd=ROOT
    )
    try:
        wait_until_healthy(server, port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        stop(server)


def wait_until_healthy(server: subprocess.Popen[bytes], port: int) -> None:
    """Come back when the server answers; give up when it ended or takes too long."""
    give_up = time.monotonic() + START_SECONDS
    while not is_healthy(port):
        if server.poll() is not None:
            sys.exit(f"conformance: the server ended with {server.returncode} before it answered")
        if time.monotonic() > give_up:
            sys.exit(f"conformance: /health did not answer 200 within {START_SECONDS} s")
        time.sleep(0.1)


def is_healthy(port: int) -> bool:
    """Whether /health answers 200. Asked without urllib, which may go through a proxy."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def stop(server: subprocess.Popen[bytes]) -> None:
    """Ask the server to end, then make it."""
    server.terminate()
    try:
        server.wait(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def run(suite: Suite, url: str) -> Outcome:
    """Run one suite, keep what it said in build/conformance, and tell how it went."""
    results = OUTPUT / suite.name
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    printed = run_suite(make_command(suite, url, results))
    log = results / "log.txt"
    log.write_text(printed, encoding="utf-8")
    if not any(verdict in printed for verdict in VERDICTS):
        sys.exit(f"conformance {suite.version} {suite.wire}: no verdict, see {log}")
    outcome = read(printed, read_baseline(suite.baseline))
    print_report(suite, outcome, log)
    return outcome


def make_command(suite: Suite, url: str, results: Path) -> list[str]:
    """The command line. Without `--suite all`, what is new or still on trial would be left out."""
    return node.make_command(
        *(suite.program, "server", "--url", url, "--suite", "all", *suite.options),
        *("--expected-failures", str(suite.baseline), "--output-dir", str(results)),
    )


def run_suite(arguments: list[str]) -> str:
    """Everything a suite printed. Its exit status says less than the verdict at the end of it."""
    done = subprocess.run(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=SUITE_SECONDS,
        check=False,
    )
    return done.stdout


def read_baseline(baseline: Path) -> set[str]:
    """The scenarios, or scenario:check pairs, that a baseline names."""
    text = baseline.read_text(encoding="utf-8")
    return set(re.findall(r"^ *- *([^\s#]+)", text, re.MULTILINE))


def read(printed: str, baseline: set[str]) -> Outcome:
    """Tell an outcome from what a suite printed."""
    scenarios = set(re.findall(r"^=== Running scenario: (\S+) ===$", printed, re.MULTILINE))
    expected = list_marked_names("~", printed)
    unexpected = list_marked_names("✗", printed)
    failed = {entry.partition(":")[0] for entry in expected + unexpected}
    return Outcome(
        passed=len(scenarios - failed),
        expected=expected,
        unexpected=unexpected,
        stale=sorted(baseline - set(expected)),
    )


def list_marked_names(mark: str, printed: str) -> list[str]:
    """The names that the verdict lists with a mark. Only there are they indented by two."""
    _, _, end = printed.partition("=== SUMMARY ===")
    return re.findall(rf"^  {mark} (\S+)$", end, re.MULTILINE)


def print_report(suite: Suite, outcome: Outcome, log: Path) -> None:
    """Print the one line of a suite, and what is wrong with it."""
    print(
        f"conformance {suite.version} {suite.wire}: "
        f"{outcome.passed} passed, {len(outcome.expected)} expected failures",
        flush=True,
    )
    for entry in outcome.unexpected:
        print(f"  failed, and {suite.baseline.name} does not expect it: {entry}")
    for entry in outcome.stale:
        print(f"  did not fail, so it does not belong in {suite.baseline.name}: {entry}")
    if not outcome.good:
        print(f"  see {log}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
