"""Reads statute compilations in USLM XML: a law as the laws after it have changed it."""

import re
from collections.abc import Iterator
from typing import ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts import references
from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.xml import find_text, parse_iso_date, parse_xml
from readingroom.bases.federal.formats.register import to_title_case
from readingroom.bases.federal.formats.uslm import extract_body_text, is_uslm
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    RecordText,
    SearchableFields,
    build_citation_fields,
)
from readingroom.bases.federal.schema.ids import make_compilation_id, make_law_id
from readingroom.bases.federal.schema.records import Compilation, LinkKind
from readingroom.core.text import fold_dashes

PUBLISHER = "Office of the Legislative Counsel, U.S. House of Representatives"
_LAW_NUMBER_PATTERN = re.compile(r"(?:Public Law|P\.\s?L\.)?\s*(\d{1,3})-(\d{1,4})")
_COMPILATION_HREF_PATTERN = re.compile(r"/us/sComp/(\d+)/(\d+)(?:/.*)?")


class CompilationLoader:
    """`COMPS-1565.xml`: one act as amended."""

    format_id: ClassVar[str] = "comps/2"
    record_source_names: ClassVar[tuple[str, ...]] = ("statute_compilations",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return is_uslm(file_start_reader, b"<statuteCompilation ")

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        compilation_element = parse_xml(raw_file.data)
        metadata_element = compilation_element.find("meta")
        if metadata_element is None:
            raise ValueError("no <meta> in this file")
        yield _build_compilation(compilation_element, metadata_element, file_stamp)


def _build_compilation(
    compilation_element: Element, metadata_element: Element, file_stamp: FileStamp
) -> ParsedRecord:
    compilation_number = find_text(metadata_element, "property[@role='fileId']")
    if not compilation_number:
        raise ValueError("the file does not say which compilation it is")
    edition_note_element = compilation_element.find("preface/editionNote")
    last_law_id = _find_last_law_id(edition_note_element, metadata_element)
    amended_at, approved_at = (
        _read_amendment_date(edition_note_element),
        parse_iso_date(find_text(metadata_element, "approvedDate")),
    )
    compilation_title = find_text(metadata_element, "title") or f"Compilation {compilation_number}"
    compilation_title = (
        to_title_case(compilation_title) if compilation_title.isupper() else compilation_title
    )
    law_id = _find_law_id(compilation_element, metadata_element)
    compilation_text = extract_body_text(compilation_element)
    published_at = amended_at or approved_at
    law_label = (
        f"Public Law {law_id.partition(':')[2]}" if law_id else f"COMPS-{compilation_number}"
    )
    amendment_note = (
        f", as amended through {_format_law_citation(last_law_id)}"
        if last_law_id and last_law_id != law_id
        else ""
    )
    citation_text = f"{compilation_title}, {law_label}{amendment_note}"
    url = f"https://www.govinfo.gov/app/details/COMPS-{compilation_number}"
    short_titles = [
        short_title
        for short_title_element in metadata_element.findall("containsShortTitle")
        if (short_title := find_text(short_title_element))
    ]
    compilation_record = Compilation(
        id=make_compilation_id(compilation_number),
        title=compilation_title,
        congress=int(find_text(metadata_element, "congress") or 0) or None,
        law_id=law_id,
        approved_at=approved_at,
        amended_through=last_law_id,
        amended_at=amended_at,
        statutes_at_large=_find_statutes_citation(metadata_element),
        short_titles=short_titles,
        usc_references=list(
            references.collect_references((compilation_element,)).words_by_usc_section
        ),
        sections=sum(1 for _ in compilation_element.iter("section")),
        characters=len(compilation_text),
        **build_citation_fields(
            file_stamp, url=url, org=PUBLISHER, cite=citation_text, published_at=published_at
        ),
    )
    congress_facet_values = (
        [str(compilation_record.congress)] if compilation_record.congress else []
    )
    return ParsedRecord(
        compilation_record,
        searchable_fields=SearchableFields(
            "\n".join(dict.fromkeys((compilation_title, *short_titles))), citation_text
        ),
        values_by_facet={"congress": congress_facet_values, "type": ["compilation"]},
        # Each edition is a version of the text, so that two of them can be compared.
        text=RecordText(
            last_law_id.partition(":")[2] if last_law_id else "text",
            compilation_text,
            compilation_title,
            url,
            file_stamp.sha256,
            f"As amended through {_format_law_citation(last_law_id)}"
            if last_law_id
            else "As amended",
            published_at,
        ),
        links=[
            RecordLink(LinkKind.COMPILATION, law_id, f"the law it is the text of: {citation_text}")
        ]
        if law_id
        else (),
        revision=published_at,
    )


def _find_law_id(compilation_element: Element, metadata_element: Element) -> str | None:
    """The law it is the text of: as cited, else as its sections are numbered."""
    for citation_element in metadata_element.iterfind("citableAs"):
        if law_match := _LAW_NUMBER_PATTERN.match(fold_dashes(find_text(citation_element) or "")):
            return make_law_id(f"{law_match[1]}-{law_match[2]}")
    for section_element in compilation_element.iter("section"):
        if law_match := _COMPILATION_HREF_PATTERN.fullmatch(
            section_element.get("identifier") or ""
        ):
            return make_law_id(f"{law_match[1]}-{law_match[2]}")
    return None


def _find_last_law_id(
    edition_note_element: Element | None, metadata_element: Element
) -> str | None:
    """The last law in it. The printed note is right where the metadata was not kept up."""
    for element_naming_law in (edition_note_element, metadata_element):
        law_match = _LAW_NUMBER_PATTERN.search(
            fold_dashes(find_text(element_naming_law, "currentThroughPublicLaw") or "")
        )
        if law_match:
            return make_law_id(f"{law_match[1]}-{law_match[2]}")
    return None


def _read_amendment_date(edition_note_element: Element | None) -> str | None:
    date_element = edition_note_element.find("date") if edition_note_element is not None else None
    return parse_iso_date(date_element.get("date")) if date_element is not None else None


def _find_statutes_citation(metadata_element: Element) -> str | None:
    citation_texts = (
        find_text(citation_element) or ""
        for citation_element in metadata_element.iterfind("citableAs")
    )
    return next((citation for citation in citation_texts if "Stat." in citation), None)


def _format_law_citation(law_id: str) -> str:
    return f"P.L. {law_id.partition(':')[2]}"
