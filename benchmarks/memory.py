"""What a process holds in memory."""

from pathlib import Path


def resident_mb(pid: int | str = "self") -> float:
    """Its resident set, in megabytes."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024
