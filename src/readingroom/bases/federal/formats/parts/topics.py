"""The subjects that records are filed under, made where a record names them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.xml import find_text
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import make_topic_id
from readingroom.bases.federal.schema.records import LinkKind, Topic

TopicVocabulary = Literal["crs", "federal_register", "lda"]

_SUBJECTS_URL = "https://www.congress.gov/help/legislative-glossary/legislative-subject-terms"
_DESCRIPTION_BY_VOCABULARY: dict[TopicVocabulary, tuple[str, str, str]] = {
    "crs": ("Legislative subject", "Congressional Research Service", _SUBJECTS_URL),
    "federal_register": (
        "Federal Register subject",
        "Office of the Federal Register",
        "https://www.federalregister.gov/topics",
    ),
    "lda": (
        "Lobbying issue",
        "Secretary of the Senate",
        "https://lda.senate.gov/api/v1/constants/filing/lobbyingactivityissues/",
    ),
}

_SUBJECT_LIST_HEADING_PATTERN = re.compile(r"Lists? of Subjects?\b", re.I)
# Above the subjects of each part that a rule amends: `15 CFR Parts 732, 740 and 758`.
_CFR_PARTS_LINE_PATTERN = re.compile(r"\d+ CFR (?:Chapter |Parts? )[\w., ]*?(?:and [\w.]+)?[:.]?")
_SUBJECT_SEPARATOR_PATTERN = re.compile(r"[,;](?![^(]*\))\s*(?:and\s+)?")
_MAX_SUBJECT_CHARS = 80

# Each bill has one of these. A subject may bear the same name, so which name came first in a file
# does not say whether it is an area.
POLICY_AREAS = frozenset(
    (
        "Agriculture and Food",
        "Animals",
        "Armed Forces and National Security",
        "Arts, Culture, Religion",
        "Civil Rights and Liberties, Minority Issues",
        "Commerce",
        "Congress",
        "Crime and Law Enforcement",
        "Economics and Public Finance",
        "Education",
        "Emergency Management",
        "Energy",
        "Environmental Protection",
        "Families",
        "Finance and Financial Sector",
        "Foreign Trade and International Finance",
        "Government Operations and Politics",
        "Health",
        "Housing and Community Development",
        "Immigration",
        "International Affairs",
        "Labor and Employment",
        "Law",
        "Native Americans",
        "Private Legislation",
        "Public Lands and Natural Resources",
        "Science, Technology, Communications",
        "Social Sciences and History",
        "Social Welfare",
        "Sports and Recreation",
        "Taxation",
        "Transportation and Public Works",
        "Water Resources Development",
    )
)


def build_topic(
    topic_name: str,
    file_stamp: FileStamp,
    topic_vocabulary: TopicVocabulary = "crs",
    parent_topic_name: str | None = None,
) -> ParsedRecord:
    """A subject as a record names it. A file that knows the wider subject knows the most."""
    topic_kind_label, publisher_name, url = _DESCRIPTION_BY_VOCABULARY[topic_vocabulary]
    topic_record = Topic(
        id=make_topic_id(topic_name),
        title=topic_name,
        name=topic_name,
        policy_area=topic_vocabulary == "crs" and topic_name in POLICY_AREAS,
        parent_id=make_topic_id(parent_topic_name) if parent_topic_name else None,
        vocabulary=topic_vocabulary,
        **build_citation_fields(
            file_stamp,
            url=url,
            org=publisher_name,
            cite=f"{topic_kind_label}: {topic_name}",
            published_at=None,
            raw_sha256=_hash_topic(topic_name, topic_vocabulary, parent_topic_name),
        ),
    )
    parent_links = (
        [
            RecordLink(
                LinkKind.TOPIC,
                make_topic_id(parent_topic_name),
                f"parentSubject: {parent_topic_name}",
            )
        ]
        if parent_topic_name
        else []
    )
    return ParsedRecord(
        topic_record, is_partial=parent_topic_name is None, names=(topic_name,), links=parent_links
    )


@lru_cache(maxsize=4096)
def _hash_topic(topic_name: str, topic_vocabulary: str, parent_topic_name: str | None) -> str:
    return hash_item([topic_name, topic_vocabulary, parent_topic_name])


def find_listed_subjects(document_element: Element) -> list[str]:
    """Return what a document of the Register prints under `List of Subjects`, as it prints them."""
    listed_subjects: list[str] = []
    for containing_element in document_element.iter():
        is_in_list = False
        for child_element in containing_element:
            if child_element.tag == "heading":
                is_in_list = bool(
                    _SUBJECT_LIST_HEADING_PATTERN.match(find_text(child_element) or "")
                )
            elif is_in_list and child_element.tag == "p":
                listed_subjects += _split_subject_list(find_text(child_element) or "")
    return drop_repeated_topics(listed_subjects)


def _split_subject_list(paragraph_text: str) -> list[str]:
    """Return the subjects of `Coffee, Cotton, and Fruits.`; of other paragraphs none."""
    if _CFR_PARTS_LINE_PATTERN.fullmatch(paragraph_text):
        return []
    subject_names = [
        subject_name[:1].upper() + subject_name[1:]
        for subject_text in _SUBJECT_SEPARATOR_PATTERN.split(paragraph_text.rstrip(". "))
        if (subject_name := subject_text.strip())
    ]
    is_sentence = any(
        len(subject_name) > _MAX_SUBJECT_CHARS or ". " in subject_name
        for subject_name in subject_names
    )
    return [] if is_sentence else subject_names


class SubjectSpellings:
    """The usual spelling of each subject: some documents of an issue write `Marine Safety`."""

    def __init__(self, listed_subjects: Iterable[str]) -> None:
        self._usual_name_by_id: dict[str, str] = {}
        for subject_name, _ in Counter(listed_subjects).most_common():
            self._usual_name_by_id.setdefault(make_topic_id(subject_name), subject_name)

    def spell(self, subject_names: Iterable[str]) -> list[str]:
        """Return the subjects in their usual spelling, each once."""
        return list(
            dict.fromkeys(
                self._usual_name_by_id.get(make_topic_id(subject_name), subject_name)
                for subject_name in subject_names
            )
        )


def drop_repeated_topics(topic_names: Iterable[str | None]) -> list[str]:
    """Return the names that have an id of their own, without duplicates."""
    return list(
        dict.fromkeys(
            topic_name
            for topic_name in topic_names
            if topic_name and make_topic_id(topic_name) != "topic:"
        )
    )


def build_topic_links(topic_names: Iterable[str], field_name: str) -> Iterator[RecordLink]:
    for topic_name in topic_names:
        yield RecordLink(LinkKind.TOPIC, make_topic_id(topic_name), f"{field_name}: {topic_name}")
