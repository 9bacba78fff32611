"""Pages as pictures: lossless, drawn once, with the place of a quoted passage on them."""

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops

from readingroom.core.progress import no_progress
from readingroom.ingest.document import Document, PageWord
from readingroom.ingest.page_pictures import (
    PagePictures,
    PassageRectangle,
    StoredFile,
    find_passage_rectangles,
)
from readingroom.ingest.pipeline import Pipeline
from readingroom.ingest.read.sandbox import ConfinedReader
from tests.ingest.test_ocr import SENTENCE, TEXT, make_scan, make_scanned_pdf
from tests.requirements import requirement
from tests.support.papers import make_paper, open_private_copy

pytestmark = [pytest.mark.anyio, requirement("ingest:pictures")]

PASSAGE = "Access for larger vehicles is taken from the north"


class CountingPipeline(Pipeline):
    """Counts how often a process is asked for something."""

    drawn = 0
    read_again = 0

    async def render_page(self, *asked: Any, **more: Any) -> bytes:
        self.drawn += 1
        return await super().render_page(*asked, **more)

    async def find_page_words(self, *asked: Any, **more: Any) -> tuple[PageWord, ...]:
        self.read_again += 1
        return await super().find_page_words(*asked, **more)


@contextmanager
def store_file(content: bytes, file_name: str = "report.pdf") -> Iterator[StoredFile]:
    with open_private_copy(content, file_name) as private_copy:
        yield StoredFile(private_copy.file, private_copy.file_name, private_copy.sha256)


async def test_a_page_is_drawn_without_loss_and_only_once(tmp_path: Path) -> None:
    pipeline = CountingPipeline(ConfinedReader())
    pictures = PagePictures(pipeline, tmp_path)
    with store_file(make_paper(TEXT, "Second page")) as file:
        webp = await pictures.draw_page(file, 1, 72)
        png = await pipeline.render_page(file.file, file.file_name, 1, 72)
        pipeline.drawn = 0
        again = await pictures.draw_page(file, 1, 72)
        assert (pipeline.drawn, again) == (0, webp)
        await pictures.draw_page(file, 1, 100)
        await pictures.draw_page(file, 2, 72)
        assert pipeline.drawn == 2
        await pictures.delete_pictures(file.sha256)
        await pictures.draw_page(file, 1, 72)
        assert pipeline.drawn == 3
    drawn, wanted = (Image.open(io.BytesIO(picture)).convert("RGB") for picture in (webp, png))
    assert Image.open(io.BytesIO(webp)).format == "WEBP"
    assert ImageChops.difference(drawn, wanted).getbbox() is None


def measure_ink(picture: Image.Image, mark: PassageRectangle) -> float:
    """The share of dark pixels within a mark."""
    width, height = picture.size
    box = (mark.left * width, mark.top * height, mark.right * width, mark.bottom * height)
    shades = picture.convert("L").crop(tuple(map(round, box))).histogram()
    return sum(shades[:128]) / max(sum(shades), 1)


@pytest.mark.parametrize("turn", [0, 90])
async def test_the_passage_is_marked_where_it_is_printed(tmp_path: Path, turn: int) -> None:
    """Also on a scan that lies on its side: OCR turns it, and the marks are turned back."""
    pipeline = CountingPipeline(ConfinedReader())
    pictures = PagePictures(pipeline, tmp_path)
    content = make_scanned_pdf(make_scan(TEXT, turn)) if turn else make_paper(TEXT)
    with store_file(content) as file:
        if turn:
            with open_private_copy(content, "report.pdf") as private_copy:
                document = await pipeline.read_document(private_copy, no_progress)
            assert isinstance(document, Document)
            await pictures.store_page_words(file.sha256, document)
        marks = await pictures.mark_passage(file, 1, PASSAGE)
        assert pipeline.read_again == (0 if turn else 1), "OCR's words were kept"
        picture = Image.open(io.BytesIO(await pictures.draw_page(file, 1, 150)))
        assert await pictures.mark_passage(file, 1, "Nothing of the kind was ever said") == ()
    assert marks
    assert all(0.03 < measure_ink(picture, mark) < 0.6 for mark in marks)
    area = sum((mark.right - mark.left) * (mark.bottom - mark.top) for mark in marks)
    assert 0.002 < area < 0.05


async def test_a_scan_is_marked_though_nothing_was_kept(tmp_path: Path) -> None:
    pictures = PagePictures(Pipeline(ConfinedReader()), tmp_path)
    with store_file(make_scanned_pdf(make_scan(SENTENCE)), "scan.pdf") as file:
        assert len(await pictures.mark_passage(file, 1, SENTENCE)) == 1


def make_words(*lines: str) -> list[PageWord]:
    """Words of equal width, line by line."""
    return [
        PageWord(word, column / 10, row / 10, (column + 1) / 10, (row + 1) / 10)
        for row, line in enumerate(lines)
        for column, word in enumerate(line.split())
    ]


async def test_a_passage_has_a_mark_for_each_line() -> None:
    page = make_words("The infra- was laid", "structure in May", "and paid for")

    assert find_passage_rectangles(page, "infrastructure in May") == ()
    assert find_passage_rectangles(page, "was laid structure in") == (
        PassageRectangle(0.2, 0.0, 0.4, 0.1),
        PassageRectangle(0.0, 0.1, 0.2, 0.2),
    )
    broken = make_words("The infra-", "structure is paid")
    assert find_passage_rectangles(broken, "The infrastructure is paid") == (
        PassageRectangle(0.0, 0.0, 0.2, 0.1),
        PassageRectangle(0.0, 0.1, 0.3, 0.2),
    )


async def test_a_passage_that_goes_on_elsewhere_is_marked_as_far_as_it_stands_here() -> None:
    page = make_words("Page two of nine", "homes shall be built here", "and nowhere else")

    assert find_passage_rectangles(page, "In all forty homes shall be built here Page footer") == (
        PassageRectangle(0.0, 0.1, 0.5, 0.2),
    )


async def test_a_passage_of_one_word_again_and_again_costs_no_time() -> None:
    page = make_words(*["ab " * 10] * 2000)
    started = time.process_time()

    assert find_passage_rectangles(page, "ab x " * 1000) == ()

    # Comparing every pair of equal words took minutes.
    assert time.process_time() - started < 5


async def test_pictures_that_others_delete_meanwhile_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = PagePictures(Pipeline(ConfinedReader()), tmp_path)
    with store_file(make_paper(TEXT)) as file:
        webp = await pictures.draw_page(file, 1, 72)
        gone = tmp_path / file.sha256 / "2@72.webp"
        find_all = Path.glob

        def find_one_too_many(folder: Path, pattern: str) -> Iterator[Path]:
            yield from find_all(folder, pattern)
            yield gone  # listed, and then deleted by another thread

        monkeypatch.setattr(Path, "glob", find_one_too_many)
        assert await pictures.draw_page(file, 1, 100) != webp
        await pictures.delete_pictures(file.sha256)
        assert not gone.parent.exists()


def _set_in_lines(text: str) -> list[PageWord]:
    """The words of a page, ten to a line."""
    return [
        PageWord(word, number % 10 / 10, number // 10 / 100, (number % 10 + 1) / 10, 0.01)
        for number, word in enumerate(text.split())
    ]


async def test_words_that_only_happen_to_agree_are_not_marked() -> None:
    page = _set_in_lines(" ".join(f"p{number} of the plan for p{number}" for number in range(60)))
    passage = " ".join(
        f"q{number} r{number} s{number} t{number} of the plan" for number in range(20)
    )
    assert find_passage_rectangles(page, passage) == ()
    # Half of it is enough, whatever stands between.
    half = "one two three four five six seven eight"
    known = _set_in_lines(" ".join(f"p{number}" for number in range(200)) + f" {half} end")
    assert find_passage_rectangles(known, f"{half} nine ten eleven twelve") != ()
    assert (
        find_passage_rectangles(known, f"{half} {' '.join(f'x{number}' for number in range(40))}")
        != ()
    )


async def test_what_goes_on_at_another_page_is_marked_at_the_edge_of_this_one() -> None:
    before = " ".join(f"p{number}" for number in range(200))
    opening = "the homes that are built here have a garden each"
    rest = " ".join(f"x{number}" for number in range(100))
    footer = "a footnote and the name of the plan 14"
    assert (
        find_passage_rectangles(_set_in_lines(f"{before} {opening} {footer}"), f"{opening} {rest}")
        != ()
    )
    assert (
        find_passage_rectangles(_set_in_lines(f"{footer} {opening} {before}"), f"{rest} {opening}")
        != ()
    )
    # In the middle of a page nothing goes on.
    middle = _set_in_lines(f"{before} {opening} {before}")
    assert find_passage_rectangles(middle, f"{opening} {rest}") == ()
    assert find_passage_rectangles(middle, f"{rest} {opening}") == ()
