"""The evaluation questions, and the plain text of the documents that answer them.

The text is extracted here from scratch, and not with the project's own readers: the questions judge
those too.
"""

import csv
import html
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import lxml.html
import pypdfium2
from lxml import etree

FOLDER = Path(__file__).parents[1] / "fixtures" / "questions"
SETS = ("field", "desk", "guidance", "plans", "federal")
TUNING_SETS = ("desk_more",)
"""Sets that have no test half."""
SAMPLE_TEST_SETS = (
    "desk_fresh",
    "desk_new",
    "desk_third",
    "desk_fourth",
    "desk_fifth",
    "desk_sixth",
)
"""Sets on the sample that have no tuning half."""
SHARED_TEST_SETS = (
    "federal_fresh",
    "plans_fresh",
    "federal_third",
    "plans_third",
    "plans_fourth",
    "federal_fourth",
    "plans_fifth",
    "federal_fifth",
    "plans_sixth",
    "federal_sixth",
    "plans_seventh",
    "federal_seventh",
)
"""Sets on the shared data that have no tuning half."""
TEST_SETS = (*SAMPLE_TEST_SETS, *SHARED_TEST_SETS)
MANY_SETS = (
    *("plans", "federal", "guidance", "sample"),
    *("plans_more", "federal_more", "sample_more"),
)
"""Sets of hundreds, below `many`, all for tuning."""

_SOURCE = Path(__file__).parents[2] / "src" / "readingroom"
_SAMPLE_TEXT = "text/sample.txt"
_PASSAGE_WORDS = 100
_RARE_SHARE = 0.01

# Words of any question: they are no help in finding a passage, however few passages have them.
_ASKING_WORDS = """
    what which who whom whose when where why how does did has have had can could may might must
    should would will shall was were are the and for from with without about into out off that
    this these those there here they them their you your our his her its not any all some one two
    three say says said get got give make made go going come keep want put still already more most
"""
_ASKING = frozenset(_ASKING_WORDS.split())


@dataclass(frozen=True)
class Question:
    """One line of a question file; the fields are its columns, in their order."""

    id: str
    split: str
    kind: str
    style: str
    base: str
    corpus: str
    document: str
    section: str
    quote: str
    question: str
    also: str

    @property
    def answers(self) -> list[tuple[str, str]]:
        """Return the document and the quote of every passage that counts as right."""
        if self.kind != "answerable":
            return []
        alternates = [answer for answer in self.also.split(" ;; ") if answer]
        return [(self.document, self.quote), *(_split_answer(answer) for answer in alternates)]


COLUMNS = [field.name for field in fields(Question)]


def read_questions(set_name: str) -> list[Question]:
    """Return the questions of one set, in the order of the file."""
    with (FOLDER / f"{set_name}.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Question(**row) for row in rows]


def read_many_questions(set_name: str) -> list[Question]:
    """Return the questions of one set below `many`, which have a document and a quote only."""
    with (FOLDER / "many" / f"{set_name}.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    blanks = dict.fromkeys(COLUMNS, "") | {"split": "tuning", "kind": "answerable"}
    return [
        Question(**blanks | row | {"id": f"many-{set_name}-{line_number}"})
        for line_number, row in enumerate(rows, 1)
    ]


def read_unanswerable_questions(corpus: str) -> list[Question]:
    """Return the questions below `many` that no document of a corpus answers."""
    with (FOLDER / "many" / "unanswerable.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    blanks = dict.fromkeys(COLUMNS, "") | {"split": "tuning", "kind": "unanswerable"}
    return [
        Question(
            **blanks
            | {name: row[name] for name in ("corpus", "base", "document", "question")}
            | {"id": f"many-unanswerable-{line_number}"}
        )
        for line_number, row in enumerate(rows, 1)
        if row["corpus"] == corpus
    ]


def read_header(set_name: str) -> list[str]:
    """Return the names in the first line of a set's file."""
    with (FOLDER / f"{set_name}.tsv").open(encoding="utf-8") as file:
        return file.readline().rstrip("\n").split("\t")


def read_absent_terms() -> dict[str, list[str]]:
    """Return the terms that are in no document, by the id of the unanswerable question."""
    with (FOLDER / "absent_terms.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["id"]: row["terms"].split(" ;; ") for row in rows}


def extract_sample(document: str) -> str:
    """Return the text of one document of the sample corpus, its white space joined."""
    if document.startswith("/"):
        return _join_blanks(_text_of_page(_sample_page(document)))
    path = _SOURCE / "bases" / document if document == _SAMPLE_TEXT else _SOURCE / "demo" / document
    return _join_blanks(extract_file(path))


def extract_sample_base(base: str) -> str:
    """Return the text of everything that one base holds once the sample is loaded."""
    if base == "text":
        return extract_sample(_SAMPLE_TEXT)
    if base == "guidance":
        return _join_blanks((_SOURCE / "demo" / "govuk.toml").read_text("utf-8"))
    folder = {"policy": "policies", "documents": "application", "federal": "records"}[base]
    files = sorted((_SOURCE / "demo" / folder).iterdir())
    return " ".join(_join_blanks(extract_file(file)) for file in files)


@cache
def extract_shared(path: Path) -> str:
    """Return the text of one shared file, its white space joined; raise OSError without it."""
    return _join_blanks(extract_file(path))


def extract_file(path: Path) -> str:
    """Return the text of a PDF, an XML or HTML file, a GOV.UK item in JSON, or a plain file."""
    suffix = path.suffix.lower()
    if suffix == ".pdf":
        return "\n".join(_pages_of(path))
    if suffix == ".xml":
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
        return _without_tags(" ".join(etree.fromstring(path.read_bytes(), parser).itertext()))
    if suffix in (".htm", ".html"):
        return str(lxml.html.fromstring(path.read_bytes()).text_content())
    text = path.read_text("utf-8")
    return _text_of_page(json.loads(text)) if suffix == ".json" else text


def quotes_whole_words(text: str, quote: str) -> bool:
    """Return whether the quote is in the text and neither begins nor ends inside a word."""
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(quote)}(?![A-Za-z0-9])", text) is not None


def cut_passage_around(text: str, quote: str) -> str:
    """Return the words of the text around the quote, about a hundred on either side."""
    start = text.index(quote)
    before = text[:start].split()[-_PASSAGE_WORDS:]
    after = text[start:].split()[: _PASSAGE_WORDS + len(quote.split())]
    return " ".join([*before, *after])


def judge_rare_words(texts: Iterable[str]) -> "RareWords":
    """Return a judge of which words are rare in these texts."""
    found: Counter[str] = Counter()
    passages = 0
    for text in texts:
        words = text.split()
        for start in range(0, len(words), _PASSAGE_WORDS):
            found.update(stem_words(" ".join(words[start : start + _PASSAGE_WORDS])))
            passages += 1
    return RareWords(found, passages)


@dataclass(frozen=True)
class RareWords:
    """How many of the passages of some texts contain each word."""

    found: Counter[str]
    passages: int

    def shared_by(self, question: str, passage: str) -> set[str]:
        """Return the words that both contain and that fewer than one passage in a hundred has."""
        limit = self.passages * _RARE_SHARE
        shared = stem_words(question) & stem_words(passage)
        return {stem for stem in shared if self.found[stem] < limit}


def stem_words(text: str) -> set[str]:
    """Return the words of a text, lower case and without their commonest endings."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {_stem(word) for word in words if len(word) > 2 and word not in _ASKING}


def _stem(word: str) -> str:
    for ending in (
        "ations",
        "ation",
        "ings",
        "ing",
        "ies",
        "ied",
        "ers",
        "es",
        "ed",
        "er",
        "s",
        "y",
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word.removesuffix("e") if len(word) > 4 else word


def _split_answer(answer: str) -> tuple[str, str]:
    document, _, quote = answer.partition("|")
    return document, quote


def _join_blanks(text: str) -> str:
    return " ".join(text.split())


def _pages_of(path: Path) -> Iterator[str]:
    with pypdfium2.PdfDocument(path) as document:
        for page in document:
            yield page.get_textpage().get_text_range()


def _without_tags(text: str) -> str:
    return html.unescape(re.sub(r"</?[a-zA-Z][^>]*>", " ", text))


def _sample_page(base_path: str) -> dict[str, Any]:
    pages = tomllib.loads((_SOURCE / "demo" / "govuk.toml").read_text("utf-8"))["page"]
    (page,) = (page for page in pages if page["path"] == base_path)
    return dict(page)


def _text_of_page(item: Any) -> str:
    return " ".join(_strings_in(item))


def _strings_in(value: Any) -> Iterator[str]:
    """Yield every string inside nested lists and dicts, without its HTML tags."""
    if isinstance(value, str):
        yield _without_tags(value)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings_in(inner)
