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

MIN_ABI_FOR_TRUNCATION = 3
"""From this ABI on, opening a file to empty it is a right of its own (Linux 6.2)."""
MIN_ABI_FOR_SIGNALS = 6
"""From this ABI on, signals can be kept inside (Linux 6.12)."""

# These numbers are the same on every architecture.
_CREATE_RULESET_CALL_NUMBER, _ADD_RULE_CALL_NUMBER, _RESTRICT_SELF_CALL_NUMBER = 444, 445, 446
_RETURN_ABI_FLAG = 1
_PATH_BENEATH_RULE_TYPE = 1
_KEEP_SIGNALS_INSIDE_FLAG = 2

_EXECUTE_RIGHT, _WRITE_FILE_RIGHT, _READ_FILE_RIGHT, _READ_DIR_RIGHT = (
    1 << 0,
    1 << 1,
    1 << 2,
    1 << 3,
)
_REMOVE_FILE_RIGHT, _MAKE_FILE_RIGHT = 1 << 5, 1 << 8
_TRUNCATE_RIGHT, _IOCTL_DEVICE_RIGHT = 1 << 14, 1 << 15
_READABLE_PATH_RIGHTS = _EXECUTE_RIGHT | _READ_FILE_RIGHT | _READ_DIR_RIGHT
# No folders: one inside another, ten thousand deep, could not be deleted afterwards.
_WRITABLE_PATH_RIGHTS = (
    _READ_FILE_RIGHT
    | _READ_DIR_RIGHT
    | _WRITE_FILE_RIGHT
    | _TRUNCATE_RIGHT
    | _MAKE_FILE_RIGHT
    | _REMOVE_FILE_RIGHT
)
# The rights that a rule for a single file may name.
_SINGLE_FILE_RIGHTS = (
    _EXECUTE_RIGHT | _WRITE_FILE_RIGHT | _READ_FILE_RIGHT | _TRUNCATE_RIGHT | _IOCTL_DEVICE_RIGHT
)
_RIGHT_COUNT_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights an ABI knows, counted from the lowest bit; later ones know all sixteen."""


def read_landlock_abi() -> int:
    """Return the version of Landlock that this kernel offers; 0 when it offers none."""
    if sys.platform != "linux":  # the numbers above mean other calls elsewhere
        return 0
    return max(0, int(_make_system_call(_CREATE_RULESET_CALL_NUMBER, None, 0, _RETURN_ABI_FLAG)))


def restrict_file_access(
    readable_paths: Iterable[str], writable_paths: Iterable[str], landlock_abi_version: int
) -> None:
    """Let this thread read and write below these paths only; paths that do not exist are skipped.

    The caller has set `no_new_privs` and has no other thread. Raise `OSError` when the kernel
    refuses.
    """
    # Those that this kernel knows: it refuses a set of rules that names any other.
    restricted_rights = (1 << _RIGHT_COUNT_BY_ABI.get(landlock_abi_version, 16)) - 1
    restricted_scopes = (
        _KEEP_SIGNALS_INSIDE_FLAG if landlock_abi_version >= MIN_ABI_FOR_SIGNALS else 0
    )
    # The second number would restrict TCP: no socket can be made at all, see seccomp.py.
    ruleset_attributes = struct.pack("QQQ", restricted_rights, 0, restricted_scopes)
    ruleset_descriptor = _raise_if_refused(
        _make_system_call(
            _CREATE_RULESET_CALL_NUMBER, ruleset_attributes, len(ruleset_attributes), 0
        )
    )
    try:
        for allowed_path in readable_paths:
            _allow_path(ruleset_descriptor, allowed_path, _READABLE_PATH_RIGHTS & restricted_rights)
        for allowed_path in writable_paths:
            _allow_path(ruleset_descriptor, allowed_path, _WRITABLE_PATH_RIGHTS & restricted_rights)
        _raise_if_refused(_make_system_call(_RESTRICT_SELF_CALL_NUMBER, ruleset_descriptor, 0))
    finally:
        os.close(ruleset_descriptor)


def _allow_path(ruleset_descriptor: int, allowed_path: str, access_rights: int) -> None:
    try:
        # O_PATH: a rule only needs to know which file is meant; its content is not opened.
        file_descriptor = os.open(allowed_path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not Path(allowed_path).is_dir():
            access_rights &= _SINGLE_FILE_RIGHTS
        # Without padding, as the kernel declares `struct landlock_path_beneath_attr`.
        rule_bytes = struct.pack("=Qi", access_rights, file_descriptor)
        _raise_if_refused(
            _make_system_call(
                _ADD_RULE_CALL_NUMBER, ruleset_descriptor, _PATH_BENEATH_RULE_TYPE, rule_bytes, 0
            )
        )
    finally:
        os.close(file_descriptor)


def _make_system_call(call_number: int, *call_arguments: int | bytes | None) -> int:
    # By its number: the C library has no functions for Landlock.
    call_result: int = ctypes.CDLL(None, use_errno=True).syscall(call_number, *call_arguments)
    return call_result


def _raise_if_refused(call_result: int) -> int:
    if call_result < 0:
        raise OSError(ctypes.get_errno(), "Landlock refused")
    return call_result
