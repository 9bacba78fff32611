"""Landlock: the kernel keeps this process, and all that it starts, to a list of folders.

Landlock is part of Linux since 5.13 and needs no privilege. Each version adds rights that can be
taken away; its number is the ABI. See the kernel's Documentation/userspace-api/landlock.rst.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

EMPTYING_ABI = 3
"""From this ABI on, opening a file to empty it is a right of its own (Linux 6.2)."""
SIGNALS_ABI = 6
"""From this ABI on, signals can be kept inside (Linux 6.12)."""

# These numbers are the same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_SCOPE_SIGNAL = 2

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_FILE, _MAKE_FILE = 1 << 5, 1 << 8
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_READING = _EXECUTE | _READ_FILE | _READ_DIR
# No folders: one inside another, ten thousand deep, could not be deleted afterwards.
_WRITING = _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _MAKE_FILE | _REMOVE_FILE
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
"""The rights that a rule for a single file may name."""
_RIGHTS_OF_ABI = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights an ABI knows, counted from the lowest bit; later ones know all sixteen."""


def find_abi() -> int:
    """Return the version of Landlock that this kernel offers; 0 when it offers none."""
    if sys.platform != "linux":  # the numbers above mean other calls elsewhere
        return 0
    return max(0, int(_call(_CREATE_RULESET, None, 0, _VERSION_FLAG)))


def restrict_files(readable: Iterable[str], writable: Iterable[str], abi: int) -> None:
    """Let this thread read and write below these paths only; paths that do not exist are skipped.

    The caller has set `no_new_privs` and has no other thread. Raise `OSError` when the kernel
    refuses.
    """
    handled = (1 << _RIGHTS_OF_ABI.get(abi, 16)) - 1
    scoped = _SCOPE_SIGNAL if abi >= SIGNALS_ABI else 0
    # The second number would restrict TCP: no socket can be made at all, see seccomp.py.
    attributes = struct.pack("QQQ", handled, 0, scoped)
    ruleset = _check(_call(_CREATE_RULESET, attributes, len(attributes), 0))
    try:
        for path in readable:
            _add_rule(ruleset, path, _READING & handled)
        for path in writable:
            _add_rule(ruleset, path, _WRITING & handled)
        _check(_call(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _add_rule(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not Path(path).is_dir():
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, descriptor)
        _check(_call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: int | bytes | None) -> int:
    result: int = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    return result


def _check(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "Landlock refused")
    return result
