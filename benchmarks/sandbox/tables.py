"""Confinement: documents read by processes that Landlock and seccomp hold, and by free ones."""

import resource
import sys
from collections.abc import Iterator

import anyio
import pypdfium2
from PIL import Image

from benchmarks.table import Ratio, Table
from readingroom.core.progress import no_progress
from readingroom.ingest.document import Document, ReadOptions, SkippedFile
from readingroom.ingest.read.sandbox import ConfinedReader
from tests.support.papers import HEIGHT, WIDTH, Paper, encode_image, make_paper, open_private_copy

TARGET = 1.25

_TEXT = (
    "The Council will support homes near the station where the roads can carry the traffic. " * 12
)
_CONFINED = "from readingroom.ingest.read import worker; worker.main()"
_FREE = (
    "from readingroom.ingest.read import worker; "
    "worker.confine_process = lambda confinement: None; worker.main()"
)
_NOTE = (
    "Processor time of the process that reads, with the tesseract it starts. Median of {rounds} "
    "rounds in which both take turns, after one that is not counted; ratio round by round. `the "
    "same` is the whole result: text, pages and chunks. The command: `make bench "
    "ARGS='--part sandbox --write'`."
)


def tables(quick: bool) -> Iterator[Table]:
    yield measure(rounds=1 if quick else 9)


def measure(rounds: int) -> Table:
    """Read each file in both ways, in turns."""
    rows = [
        _measure_file("text PDF of 1 page", "text.pdf", make_paper(_TEXT), rounds),
        _measure_file("text PDF of 40 pages", "text.pdf", make_paper(*[_TEXT] * 40), rounds),
        _measure_file("scan: a PDF of 2 pictures", "scan.pdf", _make_scanned_pdf(2), rounds),
        _measure_file("TIFF of 2 frames", "scan.tiff", _make_tiff(2), rounds),
    ]
    header = ("file", "free, processor ms", "confined, processor ms", "ratio", "target", "result")
    return Table("Confinement of readers", header, tuple(rows), _NOTE.format(rounds=rounds))


def _measure_file(title: str, file_name: str, content: bytes, rounds: int) -> tuple[str, ...]:
    free_times: list[float] = []
    confined_times: list[float] = []
    is_same = True
    for number in range(rounds + 1):
        free_time, free_result = _read(_FREE, file_name, content)
        confined_time, confined_result = _read(_CONFINED, file_name, content)
        is_same = is_same and free_result == confined_result
        if number:  # the first round fills the file cache
            free_times.append(free_time)
            confined_times.append(confined_time)
    ratio = Ratio(confined_times, free_times)
    medians = (f"{sorted(times)[len(times) // 2]:,.0f}" for times in (free_times, confined_times))
    result = "the same" if is_same else "**differs**"
    return title, *medians, str(ratio), ratio.against(TARGET), result


def _read(program: str, file_name: str, content: bytes) -> tuple[float, Document | SkippedFile]:
    """Return the processor time of a reading, in milliseconds, and its result."""
    sandbox = ConfinedReader(worker_command=(sys.executable, "-P", "-c", program))

    async def read() -> Document | SkippedFile:
        with open_private_copy(content, file_name) as private_copy:
            return await sandbox.read_document(
                private_copy.file, file_name, ReadOptions(), no_progress
            )

    before = _children_milliseconds()
    result = anyio.run(read)
    return _children_milliseconds() - before, result


def _children_milliseconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * 1000


def _scan() -> Image.Image:
    with pypdfium2.PdfDocument(make_paper(_TEXT)) as document:
        picture: Image.Image = document[0].render(scale=300 / 72, grayscale=True).to_pil()
        return picture


def _make_scanned_pdf(pages: int) -> bytes:
    made = Paper()
    for number in range(pages):
        if number:
            made.turn()
        made.picture(_scan(), (0, 0, WIDTH, HEIGHT))
    return made.done()


def _make_tiff(frames: int) -> bytes:
    return encode_image(_scan(), "TIFF", save_all=True, append_images=[_scan()] * (frames - 1))
