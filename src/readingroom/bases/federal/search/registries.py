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

from readingroom.bases.federal.schema.sources import BY_NAME
from readingroom.engine.stems import shared_stemmer
from readingroom.protocol.search import Citation, Hit
from readingroom.storage.database import Database

_MAX_ROWS = 400  # names looked at for one word
_MAX_WORDS = 12  # of a question
_SNIPPET_LENGTH = 250
_KINDS = {
    "hearings": "hearing hearings testify testified witness meeting",
    "roll_call_votes": "vote voted votes roll call passed yea nay",
    "lda_filings": "lobby lobbied lobbying lobbyist lobbyists filing client",
    "regulations_dot_gov_dockets": "docket comment comments rulemaking",
    "committees": "committee committees subcommittee jurisdiction",
    "legislators": "member senator representative congressman congresswoman party",
}
"""The sources that are looked up, and the words by which a question means one of them."""
_KIND_WEIGHT = 4.0
_HIDDEN_FIELDS = frozenset(
    ("id", "source", "title", "url", "source_url", "raw_sha256", "retrieved_at", "citation_string")
)


def find_registry_records(db: Database, query: str, limit: int) -> list[Hit]:
    """Return the records whose names share most with the query, rare words counting more."""
    stems = dict.fromkeys(shared_stemmer().split(query)[:_MAX_WORDS])
    scores: defaultdict[int, float] = defaultdict(float)
    sources: dict[int, str] = {}
    matched: Counter[int] = Counter()
    for stem in stems:
        rows = _find_names(db, stem)
        for name_row, source in rows:
            scores[name_row] += math.log(1 + _MAX_ROWS / len(rows))
            sources[name_row] = source
            matched[name_row] += 1
    kinds = _find_kinds(stems)
    for name_row, source in sources.items():
        if source in kinds:
            scores[name_row] += _KIND_WEIGHT
            matched[name_row] += 1
    # One word alone may be anything, unless it is all that was asked.
    least_matched = min(2, len(stems))
    name_rows = [row for row in scores if matched[row] >= least_matched]
    name_rows.sort(key=lambda row: (-scores[row], row))
    return list(_read_hits(db, name_rows, sources, limit))


def _find_names(db: Database, stem: str) -> list[tuple[int, str]]:
    """Return names with a word that begins with the stem, each with its source."""
    if len(stem) < 3 or not stem.isalnum():
        return []
    rows = db.execute(
        """SELECT n.name_row, n.source FROM names_fts f JOIN names n ON n.name_row = f.rowid
           WHERE f.folded MATCH ? LIMIT ?""",
        (f'" {stem}"', _MAX_ROWS),
    ).fetchall()
    return [(row["name_row"], row["source"]) for row in rows if row["source"] in _KINDS]


def _find_kinds(stems: Mapping[str, None]) -> set[str]:
    stemmer = shared_stemmer()
    return {source for source, words in _KINDS.items() if stems.keys() & set(stemmer.split(words))}


def _read_hits(
    db: Database, rows: Sequence[int], sources: Mapping[int, str], limit: int
) -> Iterator[Hit]:
    ids: set[str] = set()
    for name_row in rows:
        table = BY_NAME[sources[name_row]].name
        record = db.execute(
            f"""SELECT r.id, r.record, r.source_url, r.citation_string, r.published_at
                FROM name_forms f JOIN {table} r ON r.id = f.record_id
                WHERE f.name_row = ? AND r.status = 'active'
                ORDER BY r.published_at DESC LIMIT 1""",
            (name_row,),
        ).fetchone()
        if record is None or record["id"] in ids:
            continue
        ids.add(record["id"])
        fields = json.loads(record["record"])
        yield Hit(
            id=record["id"],
            title=fields["title"],
            url=record["source_url"],
            source=sources[name_row],
            snippet=_describe(fields),
            score=0.1,  # no search compared it with the question; the desk does
            published_at=record["published_at"],
            citation=Citation(citation_string=record["citation_string"], url=record["source_url"]),
        )
        if len(ids) == limit:
            return


def _describe(fields: Mapping[str, Any]) -> str:
    """Return what a record says in words, from its fields."""
    texts: dict[str, None] = {}

    def collect(value: Any) -> None:
        if isinstance(value, str) and " " in value.strip() and "://" not in value:
            texts[" ".join(value.split())] = None
        elif isinstance(value, Mapping):
            for name, item in value.items():
                if name not in _HIDDEN_FIELDS:
                    collect(item)
        elif isinstance(value, list):
            for item in value:
                collect(item)

    collect(fields)
    return ". ".join(texts)[:_SNIPPET_LENGTH] or str(fields["title"])
