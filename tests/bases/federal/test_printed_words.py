"""A text says the words of its file: all of them, in order, and none that is not printed there."""

import re
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from readingroom.bases.federal.formats import LOADERS
from readingroom.bases.federal.formats.parts.files import RawFile
from readingroom.bases.federal.schema.entries import FileStamp
from tests.support.federal.base import load_files, serve_in_process
from tests.support.federal.made_files import CRS_REPORT, CRS_TEXT, MADE_FILES
from tests.support.federal.raw_words import (
    find_untrue_words,
    list_words,
    parse_strictly,
    read_raw_page,
    read_raw_words,
)

ORIGIN = FileStamp("2026-01-01T00:00:00+00:00", "0" * 64)
HEADER_OF_THE_RECORD = re.compile(r"\s*\[Congressional Record Volume.*?\n(?=\n)", re.S)


def read_texts(name: str, data: bytes) -> dict[str, str]:
    """The texts of a file by the ids of their records, as a load would store them."""
    file = RawFile(name, data, lambda _: None)
    loader: Any = next(each for each in LOADERS if each.recognizes_file(file.start_reader))
    entries = list(loader.parse(file, ORIGIN))
    return {entry.record.id: entry.text.body for entry in entries if entry.text is not None}


def read_raw_text(name: str, data: bytes) -> str:
    """What a file says where its format has the text of a record, by lxml alone."""
    if name.endswith(".htm"):
        text = HEADER_OF_THE_RECORD.sub("", read_raw_page(data), count=1)
        return text[text.index("[House Report") :] if name.startswith("CRPT") else text
    root = parse_strictly(data)
    paths = {
        "cfrDoc": "//*[self::u:section or self::u:appendix]"
        "[not(ancestor::u:section or ancestor::u:appendix)]",
        "frDoc": "//u:main[not(parent::u:component)][../*[1][self::u:meta]/u:docNumber]",
    }
    path = paths.get(etree.QName(root).localname, "(u:main | u:amendMain)[1]")
    elements: Any = root.xpath(path, namespaces={"u": "http://schemas.gpo.gov/xml/uslm"})
    return "\n".join(map(read_raw_words, elements))


def check_words(name: str, data: bytes) -> int:
    """Compare our texts of a file with its raw words; return how long they are."""
    texts = read_texts(name, data)
    if name.startswith("CREC"):
        # What is printed as an amendment is part of the page that it stands on.
        texts = {id: text for id, text in texts.items() if id.startswith("crec:")}
    ours = list(texts.values())
    raw = read_raw_text(name, data)
    added, lost = find_untrue_words(ours, raw)
    assert (dict(added), dict(lost)) == ({}, {}), name
    if b"<footnote" not in data:
        # A footnote stands after its paragraph; all else stands where it is printed.
        assert list_words("\n".join(ours)) == list_words(raw), name
    return sum(map(len, ours))


def find_official_texts(shared_data: Path) -> list[Path]:
    uslm = (shared_data / "federal" / "uslm").glob("*/*.[xX][mM][lL]")
    return [*sorted(uslm), *sorted((shared_data / "federal" / "crec").rglob("CREC-*.htm"))]


@pytest.mark.parametrize("name", sorted(MADE_FILES))
def test_a_text_says_the_words_of_its_file(name: str) -> None:
    made = MADE_FILES[name]
    (text,) = read_texts(name, made.data.encode()).values()
    assert text == made.text
    check_words(name, made.data.encode())


def test_cells_and_blocks_of_a_summary_do_not_run_together() -> None:
    assert read_texts("R99990.json", CRS_REPORT.encode()) == {"R99990": CRS_TEXT}


@pytest.mark.anyio
async def test_a_sentence_of_a_law_is_found_as_it_was_enacted(tmp_path: Path) -> None:
    (tmp_path / "law.xml").write_text(MADE_FILES["PLAW-119publ9902.xml"].data, "utf-8")
    load_files(tmp_path, tmp_path / "law.xml", embed=False)
    sentence = "Section 9502(d)(1) of the Internal Revenue Code of 1986 is amended"
    async with serve_in_process(tmp_path) as ask:
        found = await ask.answer("lexical_search", query=f'"{sentence}"', source="public_laws")
        assert [hit["id"] for hit in found["results"]] == ["pl:119-9902"]
        fetched = await ask.answer("fetch", id="pl:119-9902", section="2")
        assert sentence in fetched["text"]
        assert "issued on February 10, 2014" in fetched["text"]


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    [
        "114publ190-uslm.xml",
        "BILLS-115hr1eas2.xml",
        "COMPS-1649.xml",
        "CREC-2005-07-20-pt1-PgS8510-2.htm",
        "S2731_RCS.XML",
        "SC14_enr.XML",
    ],
)
def test_an_official_file_is_read_word_for_word(shared_data: Path, name: str) -> None:
    (path,) = (path for path in find_official_texts(shared_data) if path.name == name)
    assert check_words(name, path.read_bytes())


@pytest.mark.data
@pytest.mark.full
def test_all_official_files_are_read_word_for_word(shared_data: Path) -> None:
    paths = find_official_texts(shared_data)
    assert len(paths) > 260
    assert sum(check_words(path.name, path.read_bytes()) for path in paths) > 8_000_000
