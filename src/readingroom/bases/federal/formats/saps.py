"""Reads Statements of Administration Policy: YAML records, and their PDFs where they lie beside."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, ClassVar

from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.mentions import find_bill_links
from readingroom.bases.federal.formats.parts.pdfs import PdfText
from readingroom.bases.federal.formats.parts.positions import determine_position
from readingroom.bases.federal.formats.parts.yaml_files import parse_yaml
from readingroom.bases.federal.schema.entries import (
    FileProblem,
    FileStamp,
    ParsedRecord,
    RecordLink,
    RecordText,
    SearchableFields,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import make_bill_id, make_sap_id
from readingroom.bases.federal.schema.presidents import PRESIDENTS_BY_NUMBER
from readingroom.bases.federal.schema.records import LinkKind, Sap

_BILL_CODE_PATTERN = re.compile(r"([a-z]+)(\d{1,5})", re.ASCII)
_PDF_NAME_PATTERN = re.compile(rb"^\s+file: (\S.*?)\s*$", re.M)
# PDFs are read in parallel; this bounds how many of them are in memory.
_PDF_BATCH_SIZE = 64
_STATEMENTS_FILE_NAME_PATTERN = re.compile(r"(\d+)-(\w+)\.yaml", re.ASCII)
# One official record has ten numbers run together as one; its address keeps them apart:
# saphjr75-76-77-78-79-80-82-83-84-85h_20131004.pdf.
_BILLS_IN_URL_PATTERN = re.compile(
    r"/sap(hr|s|hjr|sjr|hcr|scr|hres|sres)(\d{1,4}(?:-\d{1,4})+)[a-z]?_\d{8}\.", re.ASCII
)
_BILL_TYPE_BY_URL_LETTERS = {"hjr": "hjres", "sjr": "sjres", "hcr": "hconres", "scr": "sconres"}


class StatementLoader:
    """`47-Trump.yaml`: every statement of one administration."""

    format_id: ClassVar[str] = "saps/6"
    record_source_names: ClassVar[tuple[str, ...]] = ("saps",)
    complete_for_columns: ClassVar[str | None] = "president, congress"

    def __init__(self, read_pdf_texts: Callable[[Sequence[bytes]], list[PdfText]]) -> None:
        self._read_pdf_texts = read_pdf_texts

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return (
            file_start_reader.first_bytes.startswith(b"- bills:")
            and b"document_title:" in file_start_reader.first_bytes
        )

    def list_companions(self, raw_file: RawFile) -> Iterator[str]:
        """The PDFs that the file names; in YAML, so plain a name needs no parser to be found."""
        for pdf_name in _PDF_NAME_PATTERN.findall(raw_file.data):
            yield pdf_name.decode().strip("'\"")

    def parse(
        self, raw_file: RawFile, file_stamp: FileStamp
    ) -> Iterator[ParsedRecord | FileProblem]:
        administration = _parse_administration(raw_file.name)
        count_by_id: Counter[str] = Counter()
        statement_entries = parse_yaml(raw_file.data)
        yield from _report_missing_pdfs(raw_file, statement_entries)
        for batch_start in range(0, len(statement_entries), _PDF_BATCH_SIZE):
            statement_batch = statement_entries[batch_start : batch_start + _PDF_BATCH_SIZE]
            for statement_data, pdf_text in zip(
                statement_batch, self._read_statement_texts(raw_file, statement_batch), strict=True
            ):
                if pdf_text.problem_text:
                    yield FileProblem(
                        f"{statement_data['file']} was not read: {pdf_text.problem_text}"
                    )
                id_without_number = make_sap_id(
                    statement_data["congress"],
                    statement_data["date_issued"],
                    statement_data["bills"],
                )
                count_by_id[id_without_number] += 1
                statement_id = make_sap_id(
                    statement_data["congress"],
                    statement_data["date_issued"],
                    statement_data["bills"],
                    count_by_id[id_without_number],
                )
                yield _build_statement(
                    statement_id, statement_data, administration, pdf_text, file_stamp
                )

    def _read_statement_texts(
        self, raw_file: RawFile, statement_entries: list[dict[str, Any]]
    ) -> list[PdfText]:
        """The words of the PDFs that the archive has here; older statements have none."""
        pdf_contents = [
            raw_file.read_sibling(statement_data["file"]) if statement_data.get("file") else None
            for statement_data in statement_entries
        ]
        pdf_texts = iter(
            self._read_pdf_texts([pdf_content for pdf_content in pdf_contents if pdf_content])
        )
        return [next(pdf_texts) if pdf_content else PdfText("") for pdf_content in pdf_contents]


@dataclass(frozen=True, slots=True)
class Administration:
    """Whose statements a file holds, as its name says: `41-Bush.yaml` is not `43-Bush.yaml`."""

    president_surname: str | None = None
    president_number: int | None = None

    @property
    def president_name(self) -> str | None:
        numbered_president = PRESIDENTS_BY_NUMBER.get(self.president_number or 0)
        return numbered_president.name if numbered_president else None


def _parse_administration(file_name: str) -> Administration:
    name_match = _STATEMENTS_FILE_NAME_PATTERN.fullmatch(PurePosixPath(file_name).name)
    return Administration(name_match[2], int(name_match[1])) if name_match else Administration()


def _find_bill_ids_in_url(statement_url: str, run_together_code: str, congress: int) -> list[str]:
    """Return the bills that an address spells, if they are those that a code runs together."""
    url_match = _BILLS_IN_URL_PATTERN.search(statement_url.lower())
    if url_match is None:
        return []
    bill_type = _BILL_TYPE_BY_URL_LETTERS.get(url_match[1], url_match[1])
    bill_numbers = url_match[2].split("-")
    if run_together_code != bill_type + "".join(bill_numbers):
        return []
    return [make_bill_id(congress, bill_type, bill_number) for bill_number in bill_numbers]


def _report_missing_pdfs(
    raw_file: RawFile, statement_entries: list[dict[str, Any]]
) -> Iterator[FileProblem]:
    """Say of how many statements the text is not here: nothing but their titles can be found."""
    pdf_names = [
        statement_data["file"] for statement_data in statement_entries if statement_data.get("file")
    ]
    missing_pdf_names = [pdf_name for pdf_name in pdf_names if not raw_file.has_sibling(pdf_name)]
    if missing_pdf_names:
        yield FileProblem(
            f"{len(missing_pdf_names)} of the {len(pdf_names)} PDFs it names are not there, such "
            f"as {missing_pdf_names[0]}: put the archive's folder `statements` beside it, and "
            "load it again"
        )


def _build_statement(
    statement_id: str,
    statement_data: dict[str, Any],
    administration: Administration,
    pdf_text: PdfText,
    file_stamp: FileStamp,
) -> ParsedRecord:
    statement_text = pdf_text.text
    congress, issued_at = int(statement_data["congress"]), str(statement_data["date_issued"])
    statement_title = " ".join(statement_data["document_title"].split())
    url = (
        statement_data.get("url")
        or statement_data.get("fetched_from_url")
        or statement_data["source"]
    ).strip()
    listed_bill_ids: list[str] = []
    for bill_code in statement_data["bills"]:
        if bill_ids_in_url := _find_bill_ids_in_url(url, bill_code, congress):
            listed_bill_ids += bill_ids_in_url
        elif bill_match := _BILL_CODE_PATTERN.fullmatch(bill_code):
            listed_bill_ids.append(make_bill_id(congress, bill_match[1], bill_match[2]))
    # The archive lists only the first of several. What a bill was called before, amends or is
    # amended by is what the statement is on, too.
    title_links = find_bill_links(statement_title, congress, LinkKind.STATEMENT, "document_title")
    bill_ids = list(dict.fromkeys((*listed_bill_ids, *(link.id for link in title_links))))
    stated_position = determine_position(statement_text)
    raw_sha256 = hash_item([statement_data, statement_text])
    statement_record = Sap(
        id=statement_id,
        title=statement_title,
        congress=congress,
        issued_at=issued_at,
        bills=bill_ids,
        president=administration.president_surname,
        president_number=administration.president_number,
        president_name=administration.president_name,
        position=stated_position.position,
        position_evidence=stated_position.evidence_text,
        rescinded=bool(statement_data.get("rescinded")),
        characters=len(statement_text),
        text_problem=pdf_text.problem_text,
        **build_citation_fields(
            file_stamp,
            url=url,
            org="Office of Management and Budget",
            cite=f"Statement of Administration Policy: {statement_title}",
            published_at=issued_at,
            as_of=str(statement_data.get("date_fetched") or issued_at),
            raw_sha256=raw_sha256,
        ),
    )
    evidence_text = (
        f"bills: {', '.join(statement_data['bills'])}; document_title: {statement_title}"
        + (f"; url: {url}" if len(listed_bill_ids) > len(statement_data["bills"]) else "")
    )
    return ParsedRecord(
        statement_record,
        links=[RecordLink(LinkKind.STATEMENT, bill_id, evidence_text) for bill_id in bill_ids],
        # As people ask for it: nobody calls a statement by its title alone.
        searchable_fields=SearchableFields(
            f"White House position: {statement_title}\nStatement of Administration Policy",
            action="rescinded" if statement_record.rescinded else "",
        ),
        values_by_facet={
            "congress": [str(congress)],
            "president": list(
                dict.fromkeys(
                    filter(
                        None,
                        (
                            administration.president_surname,
                            administration.president_name,
                        ),
                    )
                )
            ),
            "bill": bill_ids,
            "position": [stated_position.position],
        },
        text=RecordText("text", statement_text, statement_title, url, raw_sha256, dated=issued_at)
        if statement_text
        else None,
    )
