"""Which processes a test has started, directly or not, and what they hold."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

HANG_SECONDS = 900
"""How long a test waits for a process or an answer: many times what a busy machine needs."""


def heed_interrupts() -> None:
    """Let SIGINT end this process, and those it starts, again if it is ignored here.

    So it is in what a shell without job control starts in the background, and what is ignored is
    ignored in all processes below: one that a test interrupts would go on.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def list_descendants(process: int | None = None) -> set[int]:
    """Ids of all processes below this one, zombies included."""
    parents = dict(_parents())
    children: set[int] = set()
    below = {process or os.getpid()}
    while below:
        below = {child for child, parent in parents.items() if parent in below}
        children |= below
    return children


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def read_resident_mb(process: int | str = "self", field: str = "VmRSS") -> float:
    """What a process holds in memory, or has held at its peak (`VmHWM`), in megabytes."""
    lines = Path(f"/proc/{process}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def _parents() -> list[tuple[int, int]]:
    pairs = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            status = (entry / "stat").read_text()
        except OSError:  # gone meanwhile
            continue
        pairs.append((int(entry.name), int(status.rpartition(")")[2].split()[1])))
    return pairs


def read_cpu_seconds(process: int) -> float:
    """Processor time a process has used: unlike time on the clock, the same on a busy machine."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / os.sysconf("SC_CLK_TCK")


def wait_until(condition: Callable[[], bool]) -> None:
    """Poll: nothing notifies us when a process that is not our child has ended."""
    end = time.monotonic() + HANG_SECONDS
    pause = 0.005
    while not condition():
        assert time.monotonic() < end, f"still not true after {HANG_SECONDS} s"
        time.sleep(pause)
        pause = min(pause * 1.2, 0.2)  # to look may cost more than what is waited for


def find_free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def kill_all(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """End processes whose output is read, and close what they wrote to."""
    for process in processes:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
