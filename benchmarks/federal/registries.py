"""A federal file with many names, votes and filings, made from a seed, to measure answers on."""

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from benchmarks.federal.world import make_database
from readingroom.bases.federal import store
from readingroom.bases.federal.schema import fold


def _split_words(text: str) -> list[str]:
    return text.split()


_STARTS = _split_words(
    "Ab Al An Ar Bar Bel Ber Bran Bur Cal Car Chan Clay Col Con Cor Dal Dan Del Den Don Dun Ed El "
    "Ever Far Fen Fitz Fran Gal Gar Gil Gor Green Hal Ham Har Hen Hol Hud Jan Jef Jen Kel Ken Kir "
    "Lam Lan Lar Lin Low Mac Mal Mar Mel Mor Nel New Nor Oak Ol Par Pen Per Quin Ram Rich Ros San "
    "Shel Stan Sul Tal Thorn Tur Van Ver Wal War Wel Win Wood Yar Zim"
)
_ENDS = _split_words(
    "berg bert by cox den dale er ett ey ford gan ham ing ius kins ler ley lock man mann mer mond "
    "more nell ner ning ox quist rell ridge rick ris ron row ser sey shaw son stead ster stone "
    "ston ten thorpe tin ton vale ver vin ward way wick worth zer"
)
_FIRST = _split_words(
    "Aaron Alice Amy Andrew Anna Anthony Barbara Benjamin Brian Carla Carol Charles Daniel "
    "David Deborah Diane Donald Edward Elena Elizabeth Emily Eric Frank George Grace Gregory "
    "Harold Helen Henry Ivan James Jane Jason Joan John Joseph Julia Karen Kenneth Laura "
    "Lisa Louis Margaret Maria Mark Mary Michael Nancy Nicole Oscar Pamela Patrick Paul "
    "Peter Rachel Raymond Rebecca Richard Robert Rosa Russell Samuel Sandra Sarah Stephen "
    "Susan Thomas Timothy Victor Walter William Yolanda"
)
_TRADES = _split_words(
    "Aerospace Airlines Bancorp Biotech Brewing Cement Chemical Communications Consulting Dairy "
    "Devices Electric Energy Engineering Farms Foods Freight Gas Glass Grain Health Hospital "
    "Insurance Logistics Lumber Machinery Marine Media Medical Minerals Motors Networks Oil Optics "
    "Paper Pharma Pipeline Plastics Rail Realty Robotics Seeds Shipping Software Solar Steel Sugar "
    "Systems Telecom Textiles Tobacco Transit Utilities Water Wireless"
)
_FORMS = ("Inc.", "LLC", "Corp.", "Company", "Association", "Partners", "Group", "of America", "")
_STATES = ("MA", "NY", "CA", "TX", "OH", "GA", "WA", "IL", "FL", "PA")


@dataclass(frozen=True)
class Size:
    people: int
    filers: int
    votes: int
    filings: int


WHOLE = Size(people=12_000, filers=200_000, votes=1_000_000, filings=200_000)
QUICK = Size(people=1_000, filers=5_000, votes=20_000, filings=5_000)


def build_database(path: Path, size: Size, seed: int = 1) -> None:
    """Make the file at `path`; one that is there already is kept."""
    random_source = random.Random(seed)

    def fill(db: sqlite3.Connection) -> None:
        db.execute("BEGIN")
        _add_people(db, size.people, random_source)
        _add_votes(db, size.votes, random_source)
        _add_filings(db, size, random_source)
        db.execute("COMMIT")

    make_database(path, fill)


def make_person_name(random_source: random.Random) -> tuple[str, str]:
    return random_source.choice(_FIRST), random_source.choice(_STARTS) + random_source.choice(_ENDS)


def make_company_name(random_source: random.Random) -> str:
    first_word = f"{random_source.choice(_STARTS)}{random_source.choice(_ENDS)}"
    second_word = (
        f"{random_source.choice(_STARTS)}{random_source.choice(_ENDS)}"
        if random_source.random() < 0.6
        else ""
    )
    words = (first_word, second_word, random_source.choice(_TRADES), random_source.choice(_FORMS))
    return " ".join(word for word in words if word)


def _add_people(db: sqlite3.Connection, count: int, random_source: random.Random) -> None:
    names = []
    for number in range(count):
        first, last = make_person_name(random_source)
        id = f"{last[0]}{number:06}"
        record = {
            "id": id,
            "title": f"{first} {last}",
            "name": f"{first} {last}",
            "state": random_source.choice(_STATES),
            "chamber": random_source.choice(("house", "senate")),
            "party": random_source.choice("DR"),
            "current": number % 20 == 0,
            "terms": [{"state": "MA", "chamber": "house", "start": "2001-01-03"}] * 4,
        }
        _add_record(db, "legislators", record)
        names.append((id, f"{first} {last}"))
    _add_names(db, "legislators", names)


def _add_votes(db: sqlite3.Connection, count: int, random_source: random.Random) -> None:
    members = [id for (id,) in db.execute("SELECT id FROM legislators LIMIT 435")]
    parties = {id: random_source.choice("DR") for id in members}
    states = {id: random_source.choice(_STATES) for id in members}
    for number in range(count // len(members)):
        congress = 110 + number * 10 * len(members) // count
        day = date(2007, 1, 4) + timedelta(days=number * 7000 * len(members) // count)
        id = f"house:{congress}:1:{number}"
        record = {"id": id, "title": id, "congress": congress, "chamber": "house",
                  "published_at": day.isoformat(), "recorded": len(members)}  # fmt: skip
        _add_record(db, "roll_call_votes", record)
        db.executemany(
            "INSERT INTO member_votes VALUES (?, ?, ?, NULL, ?, ?, 'Name', ?, ?, ?)",
            (
                (id, place, member, congress, f"{day}#{number:05}", parties[member],
                 states[member], random_source.choice(("Yea", "Yea", "Nay", "Not Voting")))
                for place, member in enumerate(members, start=1)
            ),
        )  # fmt: skip


def _add_filings(db: sqlite3.Connection, size: Size, random_source: random.Random) -> None:
    """Every filing has a client of its own until these run out; registrants are few."""
    clients = list(dict.fromkeys(make_company_name(random_source) for _ in range(size.filers * 2)))[
        : size.filers
    ]
    firms = [
        f"{random_source.choice(_STARTS)}{random_source.choice(_ENDS)} Strategies"
        for _ in range(500)
    ]
    names = []
    for number in range(max(size.filings, len(clients))):
        client = clients[number % len(clients)]
        day = date(2015, 1, 20) + timedelta(days=number * 3600 // size.filings)
        id = f"lda:{number:08}-0000-4000-8000-000000000000"
        record = {
            "id": id,
            "title": client,
            "type": random_source.choice(("Q1", "Q2", "Q3", "Q4")),
            "year": day.year,
            "registrant": random_source.choice(firms),
            "client": client,
            "published_at": day.isoformat(),
            "amount_cents": random_source.randrange(500_000, 90_000_000),
            "activities": [{"issue_code": "TAX", "description": "tax matters " * 40}],
        }
        _add_record(db, "lda_filings", record)
        names.append((id, client))
    _add_names(db, "lda_filings", names)


def _add_record(db: sqlite3.Connection, source: str, record: dict[str, object]) -> None:
    db.execute(
        f"INSERT INTO {source} (id, record, loader) VALUES (?, ?, 'bench')",
        (record["id"], json.dumps(record)),
    )


def _add_names(db: sqlite3.Connection, source: str, names: list[tuple[str, str]]) -> None:
    row_by_folded_name: dict[str, int] = {}
    forms = []
    for id, name in names:
        folded = fold.pad_words(fold.fold_name(name))
        row = row_by_folded_name.setdefault(
            folded, fold.get_first_name_id(source) + 1 + len(row_by_folded_name)
        )
        forms.append((row, id, name))
    db.executemany(
        "INSERT INTO names (name_row, source, folded, initials) VALUES (?, ?, ?, ?)",
        (
            (row, source, folded, fold.join_sorted_initials(folded.split()))
            for folded, row in row_by_folded_name.items()
        ),
    )
    db.executemany(
        "INSERT INTO names_fts (rowid, folded) VALUES (?, ?)",
        ((row, folded) for folded, row in row_by_folded_name.items()),
    )
    db.executemany("INSERT OR IGNORE INTO name_forms VALUES (?, ?, ?)", forms)


def make_misspelt_names(source: str, path: Path, count: int, seed: int = 5) -> Iterator[str]:
    """Names that are there, each with a letter changed; every third in another order."""
    random_source = random.Random(seed)
    with closing(store.connect(path)) as db:
        (forms,) = db.execute("SELECT count(*) FROM names WHERE source = ?", (source,)).fetchone()
        for number in range(count):
            row = fold.get_first_name_id(source) + 1 + random_source.randrange(forms)
            (name,) = db.execute(
                "SELECT form FROM name_forms WHERE name_row = ? LIMIT 1", (row,)
            ).fetchone()
            letter_index = random_source.randrange(1, len(name) - 1)
            misspelt = (
                name[:letter_index] + random_source.choice("aeirst") + name[letter_index + 1 :]
            )
            words = misspelt.split()
            yield " ".join(reversed(words)) if number % 3 == 0 else misspelt
