"""Finds records of registries for a question: hearings, votes, filings, dockets, people.

Registries hold names rather than texts, so a search does not read them. Over all bases a question
may mean them all the same ("when was there a hearing about …"): their names are looked up word by
word.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME
from readingroom.bases.federal.search.full_text import find_names_with_word
from readingroom.engine.stems import get_shared_stemmer
from readingroom.protocol.search import Citation, Hit
from readingroom.storage.database import Database

_MAX_NAMES_PER_WORD = 400  # names looked at for one word
_MAX_QUERY_STEMS = 12  # of a question
_SNIPPET_LENGTH = 250
_KIND_WORDS_BY_SOURCE = {
    "hearings": "hearing hearings testify testified witness meeting",
    "roll_call_votes": "vote voted votes roll call passed yea nay",
    "lda_filings": "lobby lobbied lobbying lobbyist lobbyists filing client",
    "regulations_dot_gov_dockets": "docket comment comments rulemaking",
    "committees": "committee committees subcommittee jurisdiction",
    "legislators": "member senator representative congressman congresswoman party",
}
"""The sources that are looked up, and the words by which a question means one of them."""
_KIND_WORD_WEIGHT = 4.0
_HIDDEN_FIELDS = frozenset(
    ("id", "source", "title", "url", "source_url", "raw_sha256", "retrieved_at", "citation_string")
)


def find_registry_records(db: Database, query_text: str, max_results: int) -> list[Hit]:
    """Return the records whose names share most with the query, rare words counting more."""
    query_stems = dict.fromkeys(
        get_shared_stemmer().stem_significant_words(query_text)[:_MAX_QUERY_STEMS]
    )
    score_by_name_id: defaultdict[int, float] = defaultdict(float)
    source_name_by_name_id: dict[int, str] = {}
    match_count_by_name_id: Counter[int] = Counter()
    for word_stem in query_stems:
        ids_and_sources_of_names = _find_names_with_stem(db, word_stem)
        for name_id, source_name in ids_and_sources_of_names:
            score_by_name_id[name_id] += math.log(
                1 + _MAX_NAMES_PER_WORD / len(ids_and_sources_of_names)
            )
            source_name_by_name_id[name_id] = source_name
            match_count_by_name_id[name_id] += 1
    named_source_names = _find_meant_source_names(query_stems)
    for name_id, source_name in source_name_by_name_id.items():
        if source_name in named_source_names:
            score_by_name_id[name_id] += _KIND_WORD_WEIGHT
            match_count_by_name_id[name_id] += 1
    # One word alone may be anything, unless it is all that was asked.
    min_match_count = min(2, len(query_stems))
    matching_name_ids = [
        matching_name_id
        for matching_name_id in score_by_name_id
        if match_count_by_name_id[matching_name_id] >= min_match_count
    ]
    matching_name_ids.sort(
        key=lambda matching_name_id: (-score_by_name_id[matching_name_id], matching_name_id)
    )
    return list(_read_registry_hits(db, matching_name_ids, source_name_by_name_id, max_results))


def _find_names_with_stem(db: Database, word_stem: str) -> list[tuple[int, str]]:
    """Return names with a word that begins with the stem, each with its source."""
    if len(word_stem) < 3 or not word_stem.isalnum():
        return []
    name_rows = find_names_with_word(db, word_stem, _MAX_NAMES_PER_WORD)
    return [
        (name_row["name_row"], name_row["source"])
        for name_row in name_rows
        if name_row["source"] in _KIND_WORDS_BY_SOURCE
    ]


def _find_meant_source_names(query_stems: Mapping[str, None]) -> set[str]:
    word_stemmer = get_shared_stemmer()
    return {
        source_name
        for source_name, kind_text in _KIND_WORDS_BY_SOURCE.items()
        if query_stems.keys() & set(word_stemmer.stem_significant_words(kind_text))
    }


def _read_registry_hits(
    db: Database,
    name_ids: Sequence[int],
    source_name_by_name_id: Mapping[int, str],
    max_results: int,
) -> Iterator[Hit]:
    seen_ids: set[str] = set()
    for name_id in name_ids:
        table_name = SOURCES_BY_NAME[source_name_by_name_id[name_id]].name
        stored_row = db.execute(
            f"""SELECT r.id, r.record, r.source_url, r.citation_string, r.published_at
                FROM name_forms f JOIN {table_name} r ON r.id = f.record_id
                WHERE f.name_row = ? AND r.status = 'active'
                ORDER BY r.published_at DESC NULLS LAST LIMIT 1""",
            (name_id,),
        ).fetchone()
        if stored_row is None or stored_row["id"] in seen_ids:
            continue
        seen_ids.add(stored_row["id"])
        record_fields = json.loads(stored_row["record"])
        yield Hit(
            id=stored_row["id"],
            title=record_fields["title"],
            url=stored_row["source_url"],
            source=source_name_by_name_id[name_id],
            snippet=_describe_record(record_fields),
            score=0.1,  # no search compared it with the question; the desk does
            published_at=stored_row["published_at"],
            citation=Citation(
                citation_string=stored_row["citation_string"], url=stored_row["source_url"]
            ),
        )
        if len(seen_ids) == max_results:
            return


def _describe_record(record_fields: Mapping[str, Any]) -> str:
    """Return what a record says in words, from its fields."""
    distinct_texts: dict[str, None] = {}

    def collect_texts(field_value: Any) -> None:
        if isinstance(field_value, str) and " " in field_value.strip() and "://" not in field_value:
            distinct_texts[" ".join(field_value.split())] = None
        elif isinstance(field_value, Mapping):
            for field_name, inner_value in field_value.items():
                if field_name not in _HIDDEN_FIELDS:
                    collect_texts(inner_value)
        elif isinstance(field_value, list):
            for inner_value in field_value:
                collect_texts(inner_value)

    collect_texts(record_fields)
    return ". ".join(distinct_texts)[:_SNIPPET_LENGTH] or str(record_fields["title"])
