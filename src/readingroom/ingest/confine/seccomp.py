"""seccomp: the kernel refuses this process, and all that it starts, some system calls for good.

The list is of what is refused: a list of what is allowed would break with each new C library. A
refused call fails with EPERM. The filter is a small BPF program, see the kernel's
Documentation/userspace-api/seccomp_filter.rst; it needs no privilege, and containers allow it.
"""

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LOAD_WORD_OPERATION_CODE, _RETURN_OPERATION_CODE = 0x20, 0x06
_JUMP_IF_EQUAL_CODE, _JUMP_IF_GREATER_OR_EQUAL_CODE, _JUMP_IF_ANY_BIT_CODE = 0x15, 0x35, 0x45
_ALLOW_ACTION, _REFUSE_ACTION, _KILL_ACTION = 0x7FFF0000, 0x00050000 | 1, 0x80000000  # 1 is EPERM
_REFUSE_AS_MISSING_ACTION = 0x00050000 | 38  # ENOSYS
_CALL_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16
# Set in the numbers of a second set of calls on x86_64.
_X32_CALL_NUMBER_BIT = 0x40000000
_SET_FILTER_OPERATION, _IS_ACTION_AVAILABLE_OPERATION = 1, 2
_ALL_THREADS_FLAG = 1


@dataclass(frozen=True, slots=True)
class _Architecture:
    audit_number: int
    seccomp_call_number: int
    """The number of the call `seccomp` itself."""
    call_number_index: int
    """Of this architecture in the tables of numbers below."""


_ARCHITECTURES_BY_MACHINE = {
    "x86_64": _Architecture(0xC000003E, 317, 0),
    "aarch64": _Architecture(0xC00000B7, 277, 1),
}

_MISSING_CALL_NUMBER = -1
# Name: number on x86_64, number on aarch64.
_REFUSED_NUMBERS_BY_CALL = {
    # Networks, and sockets of this machine. With io_uring a socket can be made without the calls.
    "socket": (41, 198),
    "socketpair": (53, 199),
    "io_uring_setup": (425, 425),
    # Other processes of the same account: their memory, descriptors, priorities and keys.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # The group of processes that is killed together.
    "setsid": (112, 157),
    "setpgid": (109, 154),
    # What Landlock leaves open: the attributes of files, and watching folders.
    "chmod": (90, _MISSING_CALL_NUMBER),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, _MISSING_CALL_NUMBER),
    "lchown": (94, _MISSING_CALL_NUMBER),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "utime": (132, _MISSING_CALL_NUMBER),
    "utimes": (235, _MISSING_CALL_NUMBER),
    "futimesat": (261, _MISSING_CALL_NUMBER),
    "utimensat": (280, 88),
    "file_setattr": (469, 469),
    "truncate": (76, 45),
    "inotify_init": (253, _MISSING_CALL_NUMBER),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "open_by_handle_at": (304, 265),
    # Parts of the kernel that no parser needs.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "unshare": (272, 97),
    "setns": (308, 268),
    "syslog": (103, 116),
    "modify_ldt": (154, _MISSING_CALL_NUMBER),
    # Files that are only memory, which no limit on files or on the process's memory counts.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
}
_SIGNAL_NUMBERS_BY_CALL = {
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
_KILL_CALL_NUMBERS, _TGKILL_CALL_NUMBERS, _PRLIMIT_CALL_NUMBERS, _FCNTL_CALL_NUMBERS = (
    (62, 129),
    (234, 131),
    (302, 261),
    (72, 25),
)
_CLONE_CALL_NUMBERS, _CLONE3_CALL_NUMBERS = (56, 220), (435, 435)
# Of `clone`: a new namespace of files, groups, names, users, processes or networks.
_NAMESPACE_FLAGS = 0x7E020000
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX = 8, 10, 15
"""Commands of `fcntl` by which the kernel is asked to send a signal to somebody."""


def is_seccomp_available() -> bool:
    """Return whether this kernel takes filters and the numbers for this machine are known."""
    cpu_architecture = _find_architecture()
    if cpu_architecture is None:
        return False
    action_to_check = ctypes.c_uint32(_REFUSE_ACTION & 0xFFFF0000)
    c_library = ctypes.CDLL(None, use_errno=True)
    call_result: int = c_library.syscall(
        cpu_architecture.seccomp_call_number,
        _IS_ACTION_AVAILABLE_OPERATION,
        0,
        ctypes.byref(action_to_check),
    )
    return call_result == 0


def refuse_system_calls(*, refuses_signals: bool) -> None:
    """Have the kernel refuse the calls listed here to every thread of this process.

    With `refuses_signals`, also signals to any process but this one and its own group. The caller
    has set `no_new_privs`. Raise `OSError` when the kernel refuses.
    """
    cpu_architecture = _find_architecture()
    assert cpu_architecture is not None, "ask is_available() first"
    filter_bytes = b"".join(_iterate_filter_instructions(cpu_architecture, refuses_signals))
    # Kept in a variable: the header has its address alone, so the memory must outlive the call.
    filter_buffer = ctypes.create_string_buffer(filter_bytes, len(filter_bytes))
    instruction_count = len(filter_bytes) // 8
    # As C lays out `struct sock_fprog`: the pointer begins at a multiple of eight.
    program_header = struct.pack("HxxxxxxP", instruction_count, ctypes.addressof(filter_buffer))
    c_library = ctypes.CDLL(None, use_errno=True)
    if (
        c_library.syscall(
            cpu_architecture.seccomp_call_number,
            _SET_FILTER_OPERATION,
            _ALL_THREADS_FLAG,
            program_header,
        )
        != 0
    ):
        raise OSError(ctypes.get_errno(), "seccomp refused")


def _find_architecture() -> _Architecture | None:
    # A 32-bit Python on a 64-bit kernel makes calls by numbers that are not in the tables.
    if sys.platform != "linux" or sys.maxsize < 2**32:
        return None
    return _ARCHITECTURES_BY_MACHINE.get(platform.machine())


def _iterate_filter_instructions(
    cpu_architecture: _Architecture, refuses_signals: bool
) -> Iterator[bytes]:
    call_number_index = cpu_architecture.call_number_index
    yield _make_instruction(_LOAD_WORD_OPERATION_CODE, _ARCHITECTURE_OFFSET)
    # A process can also call by another architecture's numbers, as those of 32 bits on x86_64:
    # there the numbers below are other calls.
    yield _make_instruction(_JUMP_IF_EQUAL_CODE, cpu_architecture.audit_number, skip_if_true=1)
    yield _make_instruction(_RETURN_OPERATION_CODE, _KILL_ACTION)
    yield _make_instruction(_LOAD_WORD_OPERATION_CODE, _CALL_NUMBER_OFFSET)
    yield _make_instruction(_JUMP_IF_GREATER_OR_EQUAL_CODE, _X32_CALL_NUMBER_BIT, skip_if_false=1)
    yield _make_instruction(_RETURN_OPERATION_CODE, _KILL_ACTION)
    refused_numbers_by_call = _REFUSED_NUMBERS_BY_CALL | (
        _SIGNAL_NUMBERS_BY_CALL if refuses_signals else {}
    )
    for call_numbers in refused_numbers_by_call.values():
        if call_numbers[call_number_index] != _MISSING_CALL_NUMBER:
            yield _make_instruction(
                _JUMP_IF_EQUAL_CODE, call_numbers[call_number_index], skip_if_false=1
            )
            yield _make_instruction(_RETURN_OPERATION_CODE, _REFUSE_ACTION)
    yield _make_refusal_if_flags(_CLONE_CALL_NUMBERS[call_number_index], 0, _NAMESPACE_FLAGS)
    # Its flags are in memory, where a filter cannot look. C libraries then use `clone`.
    yield _make_instruction(
        _JUMP_IF_EQUAL_CODE, _CLONE3_CALL_NUMBERS[call_number_index], skip_if_false=1
    )
    yield _make_instruction(_RETURN_OPERATION_CODE, _REFUSE_AS_MISSING_ACTION)
    # Limits of another process: a limit of processor time would end it.
    yield _make_refusal_unless_argument(_PRLIMIT_CALL_NUMBERS[call_number_index], 0, (0,))
    yield _make_refusal_if_argument(
        _FCNTL_CALL_NUMBERS[call_number_index], 1, (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX)
    )
    if refuses_signals:
        own_process_id = os.getpid()
        # 0 and the negative number are the group, which this process leads and which has its
        # number.
        yield _make_refusal_unless_argument(
            _KILL_CALL_NUMBERS[call_number_index], 0, (0, own_process_id, -own_process_id)
        )
        yield _make_refusal_unless_argument(
            _TGKILL_CALL_NUMBERS[call_number_index], 0, (own_process_id,)
        )
    yield _make_instruction(_RETURN_OPERATION_CODE, _ALLOW_ACTION)


def _make_refusal_unless_argument(
    call_number: int, argument_index: int, allowed_values: Sequence[int]
) -> bytes:
    """Return instructions that refuse a call unless its argument is one of these values."""
    return _make_argument_comparison(
        call_number,
        argument_index,
        allowed_values,
        action_if_equal=_ALLOW_ACTION,
        action_if_unequal=_REFUSE_ACTION,
    )


def _make_refusal_if_argument(
    call_number: int, argument_index: int, refused_values: Sequence[int]
) -> bytes:
    """Return instructions that refuse a call if its argument is one of these values."""
    return _make_argument_comparison(
        call_number,
        argument_index,
        refused_values,
        action_if_equal=_REFUSE_ACTION,
        action_if_unequal=_ALLOW_ACTION,
    )


def _make_refusal_if_flags(call_number: int, argument_index: int, refused_flags: int) -> bytes:
    """Return instructions that refuse a call if its argument has one of these bits."""
    filter_instructions = [
        _make_instruction(_JUMP_IF_EQUAL_CODE, call_number, skip_if_false=4),
        _make_instruction(_LOAD_WORD_OPERATION_CODE, _ARGUMENTS_OFFSET + 8 * argument_index),
        _make_instruction(_JUMP_IF_ANY_BIT_CODE, refused_flags, skip_if_false=1),
        _make_instruction(_RETURN_OPERATION_CODE, _REFUSE_ACTION),
        _make_instruction(_RETURN_OPERATION_CODE, _ALLOW_ACTION),
    ]
    return b"".join(filter_instructions)


def _make_argument_comparison(
    call_number: int,
    argument_index: int,
    argument_values: Sequence[int],
    action_if_equal: int,
    action_if_unequal: int,
) -> bytes:
    value_count = len(argument_values)
    # The lower half of the argument: those compared here are of 32 bits.
    filter_instructions = [
        _make_instruction(_JUMP_IF_EQUAL_CODE, call_number, skip_if_false=value_count + 3),
        _make_instruction(_LOAD_WORD_OPERATION_CODE, _ARGUMENTS_OFFSET + 8 * argument_index),
    ]
    for value_index, argument_value in enumerate(argument_values):
        filter_instructions.append(
            _make_instruction(
                _JUMP_IF_EQUAL_CODE, argument_value, skip_if_true=value_count - value_index
            )
        )
    filter_instructions += [
        _make_instruction(_RETURN_OPERATION_CODE, action_if_unequal),
        _make_instruction(_RETURN_OPERATION_CODE, action_if_equal),
    ]
    return b"".join(filter_instructions)


def _make_instruction(
    operation_code: int, instruction_operand: int, *, skip_if_true: int = 0, skip_if_false: int = 0
) -> bytes:
    """Return one BPF instruction; jumps count the instructions to skip."""
    return struct.pack(
        "=HBBI", operation_code, skip_if_true, skip_if_false, instruction_operand & 0xFFFFFFFF
    )
