"""Confines the current process: its files, sockets, signals, memory, time and descriptors.

The process that reads a document calls `confine_process` before it looks at the first byte.
"""

import ctypes
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from readingroom.ingest.confine import landlock, seccomp

# Per file that the process writes; a page for tesseract takes at most 40 million bytes.
_MAX_WRITTEN_FILE_BYTES = 512 * 2**20
_MAX_OPEN_FILES = 128
# Processes and threads that the account may have beyond those that can be seen now.
_MAX_ADDITIONAL_TASKS = 1024

_SET_DUMPABLE_OPTION, _SET_NO_NEW_PRIVILEGES_OPTION = 4, 38
_CAPABILITY_VERSION = 0x20080522
# CAP_DAC_READ_SEARCH: root may have been started from a folder that is another account's.
_READ_ANY_FILE_CAPABILITY = 1 << 2


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a process may still do once it is confined; by default nothing."""

    readable_paths: tuple[str, ...] = ()
    writable_paths: tuple[str, ...] = ()
    memory_bytes: int = 0
    cpu_seconds: int = 0


def confine_process(confinement: Confinement) -> None:
    """Take from this process, and from all that it starts, whatever is not named. For good.

    What the system does not offer is left out: `describe_confinement_gaps` says what. Raise
    `OSError` when the
    system offers something and then refuses it. To be called while there is one thread.
    """
    _set_resource_limits(confinement.memory_bytes, confinement.cpu_seconds)
    if sys.platform != "linux":
        return
    # The first to be killed when the machine runs out of memory, rather than the server.
    with suppress(OSError):  # a container may forbid it
        Path("/proc/self/oom_score_adj").write_text("1000")
    # Without it the kernel takes Landlock's rules and seccomp's filters from root alone.
    _call_prctl(_SET_NO_NEW_PRIVILEGES_OPTION, 1)
    _drop_capabilities()
    landlock_abi_version = landlock.read_landlock_abi()
    if landlock_abi_version:
        landlock.restrict_file_access(
            confinement.readable_paths, confinement.writable_paths, landlock_abi_version
        )
    if seccomp.is_seccomp_available():
        seccomp.refuse_system_calls(
            refuses_signals=landlock_abi_version < landlock.MIN_ABI_FOR_SIGNALS
        )


def describe_confinement_gaps() -> str | None:
    """Return what this system cannot keep from a process that reads documents; None: nothing."""
    landlock_abi_version = landlock.read_landlock_abi()
    confinement_gaps = []
    if landlock_abi_version == 0:
        confinement_gaps.append("files (this needs Landlock, Linux 5.13 or later)")
    elif landlock_abi_version < landlock.MIN_ABI_FOR_TRUNCATION:
        confinement_gaps.append(
            "emptying files of the installation (this needs Linux 6.2 or later)"
        )
    if not seccomp.is_seccomp_available():
        confinement_gaps.append(
            "networks and other processes (this needs seccomp, on x86_64 or aarch64)"
        )
    if not confinement_gaps:
        return None
    return (
        "a hostile document that takes over its reader is not kept from "
        f"{' and '.join(confinement_gaps)}"
    )


def hide_process_memory() -> None:
    """Hide this process's memory and environment from other processes of the same account.

    The kernel then writes no core dump of it, and only root can attach a debugger.
    """
    if sys.platform == "linux":
        _call_prctl(_SET_DUMPABLE_OPTION, 0)


def _set_resource_limits(memory_bytes: int, cpu_seconds: int) -> None:
    """Have the kernel enforce limits on this process and on all that it starts.

    macOS accepts the memory limit without enforcing it, and Windows has no such limits; there, the
    time limits of the sandbox still hold.
    """
    try:
        import resource
    except ImportError:
        return
    limits_by_resource_id: dict[int, int] = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: _MAX_WRITTEN_FILE_BYTES,
        resource.RLIMIT_NOFILE: _MAX_OPEN_FILES,
    }
    if sys.platform == "linux":
        limits_by_resource_id[resource.RLIMIT_NPROC] = (
            _count_tasks_of_account() + _MAX_ADDITIONAL_TASKS
        )
    # Never above the hard limit that the process was started with: raising it needs root.
    for resource_id, limit_value in limits_by_resource_id.items():
        _, hard_limit = resource.getrlimit(resource_id)
        limit_value = (
            limit_value if hard_limit == resource.RLIM_INFINITY else min(limit_value, hard_limit)
        )
        # The soft limit first: a hard one that proves too low could not be raised again.
        resource.setrlimit(resource_id, (limit_value, hard_limit))
        if resource_id == resource.RLIMIT_NPROC and not _can_start_process():
            # Other containers have tasks of this account, which count though they cannot be seen.
            limit_value = hard_limit
        resource.setrlimit(resource_id, (limit_value, limit_value))


def _can_start_process() -> bool:
    try:
        child_process_id = os.fork()
    except BlockingIOError:
        return False
    if child_process_id == 0:
        os._exit(0)
    os.waitpid(child_process_id, 0)
    return True


def _count_tasks_of_account() -> int:
    """Return how many processes and threads this account has, which the kernel counts together."""
    own_user_id = os.getuid()
    task_count = 0
    with suppress(OSError):
        for process_folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it may end meanwhile
                if process_folder.stat().st_uid == own_user_id:
                    # A folder there has two links, and one more for each folder in it: for each
                    # thread.
                    task_count += (process_folder / "task").stat().st_nlink - 2
    return task_count


def _drop_capabilities() -> None:
    """Give up what root may do, but for reading."""
    capability_header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    # Effective, permitted and inheritable, for the lower and the upper 32 capabilities.
    capability_sets = (ctypes.c_uint32 * 6)()
    c_library = ctypes.CDLL(None, use_errno=True)
    _raise_if_call_failed(c_library.capget(capability_header, capability_sets))
    read_any_file_bit = capability_sets[1] & _READ_ANY_FILE_CAPABILITY
    kept_capability_sets = (ctypes.c_uint32 * 6)(read_any_file_bit, read_any_file_bit)
    _raise_if_call_failed(c_library.capset(capability_header, kept_capability_sets))


def _call_prctl(prctl_option: int, option_value: int) -> None:
    _raise_if_call_failed(
        ctypes.CDLL(None, use_errno=True).prctl(prctl_option, option_value, 0, 0, 0)
    )


def _raise_if_call_failed(call_result: int) -> None:
    if call_result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
