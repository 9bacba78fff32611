"""A parser that was taken over reads no key, writes nowhere, calls nobody and signals nobody."""

import os
import re
import resource
import signal
import struct
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pypdfium2
import pytest
from PIL import Image

from readingroom.core.progress import no_progress
from readingroom.core.settings import make_sandbox_environment
from readingroom.ingest.confine import landlock, process, seccomp
from readingroom.ingest.confine.program_paths import find_program_paths
from readingroom.ingest.document import ReadOptions
from readingroom.ingest.errors import ExtractionFailed
from readingroom.ingest.read.reader import read_file
from readingroom.ingest.read.sandbox import ConfinedReader
from readingroom.ingest.setup import make_pipeline
from readingroom.settings import load_settings
from tests.requirements import requirement
from tests.support.papers import HEIGHT, WIDTH, Paper, encode_image, make_paper
from tests.support.takeover import ALLOWED, GENEROUS, attempt_all, be_taken_over

pytestmark = pytest.mark.anyio

REFUSALS = {"EACCES", "EPERM"}
ABIS = [1, 2, 3, 4, 5, 6, 99]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with the secrets of a server."""
    data = tmp_path / "data"
    (data / "policy").mkdir(parents=True)
    (data / "keys.db").write_text("the keys")
    (data / "policy" / "lock").write_text("the key of the operator's route")
    return data


@requirement("ingest:sandbox:confined")
@pytest.mark.parametrize("abi", ABIS)
async def test_it_reads_no_key_and_no_other_file(data: Path, abi: int) -> None:
    attempts = [
        "open(f'/proc/{parent}/environ').read()",
        "open(f'/proc/{parent}/mem').read(1)",
        f"open('{data}/keys.db').read()",
        f"open('{data}/policy/lock').read()",
        f"os.listdir('{data}')",
        "os.listdir('/')",
        "os.listdir('/proc')",
        "os.listdir(os.path.expanduser('~'))",
        "open('/etc/passwd').read()",
        "open('/proc/self/environ').read()",
    ]

    another_program = (
        f"subprocess.run(['cat', '{data}/keys.db'], check=True, capture_output=True, text=True)"
    )

    outcomes = await attempt_all([*attempts, another_program], abi)

    assert "Permission denied" in outcomes.pop(another_program)
    assert set(outcomes.values()) == {"EACCES"}, outcomes


@requirement("ingest:sandbox:confined")
@pytest.mark.parametrize("abi", ABIS)
async def test_it_writes_nowhere_but_in_its_scratch_folder(data: Path, abi: int) -> None:
    attempts = [
        f"open('{data}/new', 'w')",
        f"open('{data}/keys.db', 'a')",
        f"os.truncate('{data}/keys.db', 0)",
        f"os.unlink('{data}/keys.db')",
        f"os.rename('{data}/keys.db', '{data}/gone')",
        f"os.link('{data}/keys.db', 'stolen')",
        f"os.mkdir('{data}/new')",
        "os.mkdir('folder')",
        f"os.rmdir('{data}/policy')",
        f"os.symlink('x', '{data}/new')",
        f"os.mkfifo('{data}/new')",
        f"os.chmod('{data}/keys.db', 0o666)",
        f"os.chown('{data}/keys.db', os.getuid(), -1)",
        f"os.utime('{data}/keys.db')",
        f"os.setxattr('{data}/keys.db', 'user.x', b'x')",
        f"open('{tempfile.gettempdir()}/readingroom-new', 'w')",
        "open('/dev/shm/readingroom-new', 'w')",
        "open(os.path.join(sys.prefix, 'new'), 'w')",
        "open('/proc/self/oom_score_adj', 'w')",
    ]

    outcomes = await attempt_all([*attempts, "os.write(0, b'x')", "os.ftruncate(0, 0)"], abi)

    # The descriptor of the copy that is kept is for reading alone.
    assert (outcomes.pop("os.write(0, b'x')"), outcomes.pop("os.ftruncate(0, 0)")) == (
        "EBADF",
        "EINVAL",
    )
    assert set(outcomes.values()) <= REFUSALS | {"EXDEV"}, outcomes
    assert (data / "keys.db").read_text() == "the keys"
    assert {path.name for path in data.iterdir()} == {"keys.db", "policy"}


@requirement("ingest:sandbox:confined")
async def test_it_keeps_what_a_parser_needs() -> None:
    attempts = [
        "open('page', 'w').write('x')",
        "os.rename('page', 'page 1')",
        "os.unlink('page 1')",
        "subprocess.run(['tesseract', '--version'], capture_output=True, check=True)",
        "open(os.devnull, 'w').write('x')",
        "os.urandom(8)",
        "os.kill(os.getpid(), 0)",
        "os.killpg(os.getpgrp(), 0)",
        "resource.setrlimit(resource.RLIMIT_CPU, resource.getrlimit(resource.RLIMIT_CPU))",
    ]

    for abi in (5, 99):
        outcomes = await attempt_all(attempts, abi)
        assert set(outcomes.values()) == {ALLOWED}, outcomes


@requirement("ingest:sandbox:confined")
async def test_it_opens_no_socket() -> None:
    attempts = [
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "socket.socketpair()",
        "expect(libc.syscall(425, 8, ctypes.create_string_buffer(256)))  # io_uring_setup",
    ]

    outcomes = await attempt_all(attempts)

    assert set(outcomes.values()) == {"EPERM"}, outcomes


@requirement("ingest:sandbox:confined")
@pytest.mark.parametrize("abi", ABIS)
async def test_it_signals_nobody_and_changes_no_other_process(abi: int) -> None:
    attempts = [
        "os.kill(parent, 0)",
        "os.kill(parent, signal.SIGURG)",
        "os.kill(1, 0)",
        "signal.pidfd_send_signal(os.pidfd_open(parent), 0)",
        "resource.prlimit(parent, resource.RLIMIT_CPU, (1000, 1000))",
        "os.setpriority(os.PRIO_PROCESS, parent, 5)",
        "os.sched_setaffinity(parent, {0})",
        "fcntl.fcntl(1, fcntl.F_SETOWN, parent)",
        "fcntl.fcntl(1, fcntl.F_SETSIG, 9)",
        "subprocess.run(['true'], start_new_session=True)",
        "expect(libc.ptrace(16, parent, 0, 0))",
        "expect(libc.process_vm_readv(parent, None, 0, None, 0, 0))",
        "expect(libc.shmget(1, 8, 0o1777))",
        "expect(libc.inotify_init1(0))",
        "expect(libc.unshare(0x10000000))",
    ]
    heard: list[int] = []
    previous = signal.signal(signal.SIGURG, lambda number, frame: heard.append(number))

    try:
        outcomes = await attempt_all(attempts, abi)
    finally:
        signal.signal(signal.SIGURG, previous)

    assert set(outcomes.values()) <= REFUSALS, outcomes
    assert not heard


@requirement("ingest:sandbox:confined")
async def test_it_makes_no_namespace_and_no_file_of_memory_alone() -> None:
    clone = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    attempts = [
        f"expect(libc.syscall({clone}, 0x10000011, 0, 0, 0, 0))",
        f"expect(libc.syscall({clone}, 0x40000011, 0, 0, 0, 0))",
        "expect(libc.unshare(0x10000000))",
        "expect(libc.setns(1, 0))",
        "os.memfd_create('x')",
    ]
    clone3 = "expect(libc.syscall(435, ctypes.create_string_buffer(88), 88))"
    thread = "__import__('threading').Thread(target=int).start()"

    outcomes = await attempt_all([*attempts, clone3, thread])

    assert outcomes.pop(thread) == ALLOWED
    assert outcomes.pop(clone3) == "ENOSYS"
    assert set(outcomes.values()) == {"EPERM"}, outcomes


@requirement("ingest:sandbox:confined")
@pytest.mark.parametrize(
    "attempt",
    [
        "[os.fork() or [b'x' * 50 * 2**20, signal.pause()] for _ in range(8)]; signal.pause()",
        "[open(str(n), 'wb').write(bytes(2**20)) for n in range(80)]; signal.pause()",
    ],
    ids=["memory", "disk"],
)
async def test_its_children_and_its_scratch_folder_are_bounded_together(
    attempt: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One process may have 1.5 GB, and another one with as much may be started at once."""
    limits = replace(GENEROUS, group_memory_bytes=400 * 2**20, scratch_bytes=64 * 2**20)

    with pytest.raises(ExtractionFailed, match="memory or disk"):
        await be_taken_over([attempt], limits)

    assert "too much memory or disk" in caplog.text


@requirement("ingest:sandbox:confined")
async def test_the_kernel_keeps_its_limits_and_takes_it_first_when_memory_is_short(
    tmp_path: Path,
) -> None:
    seen: dict[str, str] = {}

    async def look(process_id: float, total: float | None, message: str | None) -> None:
        for name in ("status", "limits", "oom_score_adj"):
            seen[name] = Path(f"/proc/{process_id:.0f}/{name}").read_text()
        (tmp_path / "seen").touch()

    wait = f"while not os.path.exists('{tmp_path}/seen'): __import__('time').sleep(0.01)"
    await attempt_all(["arguments[3](os.getpid(), 0, '')", wait], report=look)

    status = dict(line.split(":\t") for line in seen["status"].splitlines())
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert int(status["CapPrm"], 16) in (0, 4)  # of root's, reading is kept
    assert int(status["CapEff"], 16) in (0, 4)
    assert seen["oom_score_adj"].strip() == "1000"
    limits = {line[:26].strip(): line[26:47].strip() for line in seen["limits"].splitlines()}
    assert limits["Max open files"] == "128"
    assert limits["Max core file size"] == "0"
    assert limits["Max processes"].isdigit()


@requirement("ingest:sandbox:confined")
def test_other_processes_of_the_account_cannot_read_the_servers_environment() -> None:
    """In a process of its own, which is not root's: root may read everything."""

    def can_be_read() -> bool:
        def read() -> int:
            try:
                return len(Path(f"/proc/{os.getppid()}/environ").read_bytes()) >= 0
            except PermissionError:
                return 0

        return run_forked(read) == 1

    def serve() -> int:
        if os.getuid() == 0:
            os.setgroups([])
            os.setuid(65534)
            process._call_prctl(process._SET_DUMPABLE_OPTION, 1)  # as after exec
        before = can_be_read()
        ConfinedReader()
        return before and not can_be_read()

    assert run_forked(serve) == 1


def run_forked(function: Callable[[], int]) -> int:
    """Run a function in a copy of this process and return its result, up to 255."""
    child = os.fork()
    if child == 0:
        status = 255
        try:
            status = int(function())
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize(
    ("abi", "has_seccomp", "told"),
    [
        (7, True, None),
        (2, True, "emptying files of the installation"),
        (0, True, "not kept from files"),
        (7, False, "not kept from networks and other processes"),
        (0, False, "not kept from files .* and networks"),
    ],
)
@requirement("ingest:sandbox:confined")
def test_what_a_kernel_lacks_is_told(
    abi: int, has_seccomp: bool, told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "read_landlock_abi", lambda: abi)
    monkeypatch.setattr(seccomp, "is_seccomp_available", lambda: has_seccomp)

    gaps = process.describe_confinement_gaps()

    assert re.search(told, gaps or "") if told else gaps is None


@requirement("ingest:sandbox:confined")
def test_the_start_warns_once_of_what_a_kernel_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(landlock, "read_landlock_abi", lambda: 0)
    settings = load_settings({"data": tmp_path}, {})

    make_pipeline(settings)
    make_pipeline(settings)

    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "Landlock" in record.getMessage()


@requirement("ingest:sandbox:confined")
@pytest.mark.parametrize("sees_others", [True, False])
def test_a_limit_on_processes_never_keeps_tesseract_from_starting(
    sees_others: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks of the same account in other containers count, though they cannot be seen."""
    if not sees_others:
        monkeypatch.setattr(
            process, "_count_tasks_of_account", lambda: -process._MAX_ADDITIONAL_TASKS
        )

    def limit_and_start() -> int:
        if os.getuid() == 0:  # whom the kernel does not limit
            os.setgroups([])
            os.setuid(65534)
        before = resource.getrlimit(resource.RLIMIT_NPROC)
        process._set_resource_limits(2**40, 600)
        after = resource.getrlimit(resource.RLIMIT_NPROC)
        is_limited = after != (before[1], before[1])
        return is_limited is sees_others and run_forked(lambda: 1)

    assert run_forked(limit_and_start) == 1


X86, ARM = 0xC000003E, 0xC00000B7
REFUSED, KILLED, PASSED = 0x00050001, 0x80000000, 0x7FFF0000


def judge(machine: str, call: int, *arguments: int, architecture: int | None = None) -> int:
    """What the filter for a machine decides about a call, by running its instructions."""
    chosen = seccomp._ARCHITECTURES_BY_MACHINE[machine]
    program = b"".join(seccomp._iterate_filter_instructions(chosen, refuses_signals=True))
    given = struct.pack("=iIQ6q", call, architecture or chosen.audit_number, 0, *arguments[:6])
    accumulator = position = 0
    while True:
        code, if_true, if_false, operand = struct.unpack_from("=HBBI", program, 8 * position)
        position += 1
        if code == 0x06:
            return int(operand)
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", given, operand)
        else:
            holds = {
                0x15: accumulator == operand,
                0x35: accumulator >= operand,
                0x45: bool(accumulator & operand),
            }[code]
            position += if_true if holds else if_false


@pytest.mark.parametrize(
    ("machine", "foreign", "numbers"),
    [
        # socket, truncate, keyctl; read, openat, clone; kill, prlimit64, fcntl
        ("x86_64", ARM, ((41, 76, 250), (0, 257, 56), (62, 302, 72))),
        ("aarch64", X86, ((198, 45, 219), (63, 56, 220), (129, 261, 25))),
    ],
)
@requirement("ingest:sandbox:confined")
def test_the_filter_of_either_architecture_refuses_what_it_lists(
    machine: str, foreign: int, numbers: tuple[tuple[int, ...], ...]
) -> None:
    refused, passed, (kill, prlimit, fcntl) = numbers
    none = (0,) * 6
    assert {judge(machine, number, *none) for number in refused} == {REFUSED}
    assert {judge(machine, number, *none) for number in passed} == {PASSED}
    assert judge(machine, passed[0], *none, architecture=foreign) == KILLED
    assert judge(machine, 0x40000000 + passed[0], *none) == KILLED
    own = os.getpid()
    assert {judge(machine, kill, target, *none) for target in (0, own, -own)} == {PASSED}
    assert {judge(machine, kill, target, *none) for target in (1, -1, own + 1)} == {REFUSED}
    assert [judge(machine, prlimit, target, *none) for target in (0, 1)] == [PASSED, REFUSED]
    clone = passed[2]
    new_user, new_network, thread = 0x10000000 | 17, 0x40000000 | 17, 0x003D0F00
    assert judge(machine, clone, new_user, *none) == REFUSED
    assert judge(machine, clone, new_network, *none) == REFUSED
    assert judge(machine, clone, thread, *none) == PASSED
    assert judge(machine, 435, *none) == 0x00050000 | 38, "clone3 is not there"
    commands = [judge(machine, fcntl, 0, command, *none) for command in (1, 8, 10, 15)]
    assert commands == [PASSED, REFUSED, REFUSED, REFUSED]


@requirement("ingest:sandbox:confined")
def test_neither_the_current_folder_nor_a_home_is_among_the_programs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "tesseract").touch(0o755)
    environment = {"PATH": f"{home}/bin", "PYTHONPATH": f".:/:{tmp_path}/packages"}

    paths = find_program_paths(environment)

    assert f"{home}/bin/tesseract" in paths
    assert f"{tmp_path}/packages" in paths
    assert not {"/", ".", str(home), f"{home}/bin", str(Path.cwd())} & {*paths}
    assert str(Path.home()) not in find_program_paths(make_sandbox_environment())


TEXT = "The Council will support homes near the station where the roads can carry the traffic."


def make_scan() -> Image.Image:
    with pypdfium2.PdfDocument(make_paper(TEXT)) as document:
        picture: Image.Image = document[0].render(scale=200 / 72, grayscale=True).to_pil()
        return picture


def make_scanned_pdf() -> bytes:
    made = Paper()
    made.picture(make_scan(), (0, 0, WIDTH, HEIGHT))
    return made.done()


@pytest.mark.parametrize(
    ("file_name", "make"),
    [
        ("text.pdf", lambda: make_paper(TEXT)),
        ("scan.pdf", make_scanned_pdf),
        ("scan.tiff", lambda: encode_image(make_scan(), "TIFF")),
    ],
)
@requirement("ingest:sandbox:confined")
async def test_the_text_is_the_same_as_without(file_name: str, make: Callable[[], bytes]) -> None:
    content = make()
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(content)
        confined = await ConfinedReader(GENEROUS).read_document(
            file, file_name, ReadOptions(), no_progress
        )

    assert confined == read_file(content, file_name, ReadOptions(), lambda *progress: None)
