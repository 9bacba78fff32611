"""A federal file with many names, votes and filings, made from a seed, to measure answers on."""

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from benchmarks.federal.world import make
from readingroom.bases.federal import store
from readingroom.bases.federal.schema import fold


def _words(text: str) -> list[str]:
    return text.split()


_STARTS = _words(
    "Ab Al An Ar Bar Bel Ber Bran Bur Cal Car Chan Clay Col Con Cor Dal Dan Del Den Don Dun Ed El "
    "Ever Far Fen Fitz Fran Gal Gar Gil Gor Green Hal Ham Har Hen Hol Hud Jan Jef Jen Kel Ken Kir "
    "Lam Lan Lar Lin Low Mac Mal Mar Mel Mor Nel New Nor Oak Ol Par Pen Per Quin Ram Rich Ros San "
    "Shel Stan Sul Tal Thorn Tur Van Ver Wal War Wel Win Wood Yar Zim"
)
_ENDS = _words(
    "berg bert by cox den dale er ett ey ford gan ham ing ius kins ler ley lock man mann mer mond "
    "more nell ner ning ox quist rell ridge rick ris ron row ser sey shaw son stead ster stone "
    "ston ten thorpe tin ton vale ver vin ward way wick worth zer"
)
_FIRST = _words(
    "Aaron Alice Amy Andrew Anna Anthony Barbara Benjamin Brian Carla Carol Charles Daniel "
    "David Deborah Diane Donald Edward Elena Elizabeth Emily Eric Frank George Grace Gregory "
    "Harold Helen Henry Ivan James Jane Jason Joan John Joseph Julia Karen Kenneth Laura "
    "Lisa Louis Margaret Maria Mark Mary Michael Nancy Nicole Oscar Pamela Patrick Paul "
    "Peter Rachel Raymond Rebecca Richard Robert Rosa Russell Samuel Sandra Sarah Stephen "
    "Susan Thomas Timothy Victor Walter William Yolanda"
)
_TRADES = _words(
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


def build(path: Path, size: Size, seed: int = 1) -> None:
    """Make the file at `path`; one that is there already is kept."""
    chance = random.Random(seed)

    def fill(db: sqlite3.Connection) -> None:
        db.execute("BEGIN")
        _people(db, size.people, chance)
        _votes(db, size.votes, chance)
        _filings(db, size, chance)
        db.execute("COMMIT")

    make(path, fill)


def person(chance: random.Random) -> tuple[str, str]:
    return chance.choice(_FIRST), chance.choice(_STARTS) + chance.choice(_ENDS)


def filer(chance: random.Random) -> str:
    owner = f"{chance.choice(_STARTS)}{chance.choice(_ENDS)}"
    second = f"{chance.choice(_STARTS)}{chance.choice(_ENDS)}" if chance.random() < 0.6 else ""
    words = (owner, second, chance.choice(_TRADES), chance.choice(_FORMS))
    return " ".join(word for word in words if word)


def _people(db: sqlite3.Connection, count: int, chance: random.Random) -> None:
    names = []
    for number in range(count):
        first, last = person(chance)
        id = f"{last[0]}{number:06}"
        record = {
            "id": id,
            "title": f"{first} {last}",
            "name": f"{first} {last}",
            "state": chance.choice(_STATES),
            "chamber": chance.choice(("house", "senate")),
            "party": chance.choice("DR"),
            "current": number % 20 == 0,
            "terms": [{"state": "MA", "chamber": "house", "start": "2001-01-03"}] * 4,
        }
        _record(db, "legislators", record)
        names.append((id, f"{first} {last}"))
    _names(db, "legislators", names)


def _votes(db: sqlite3.Connection, count: int, chance: random.Random) -> None:
    members = [id for (id,) in db.execute("SELECT id FROM legislators LIMIT 435")]
    parties = {id: chance.choice("DR") for id in members}
    states = {id: chance.choice(_STATES) for id in members}
    for number in range(count // len(members)):
        congress = 110 + number * 10 * len(members) // count
        day = date(2007, 1, 4) + timedelta(days=number * 7000 * len(members) // count)
        id = f"house:{congress}:1:{number}"
        record = {"id": id, "title": id, "congress": congress, "chamber": "house",
                  "published_at": day.isoformat(), "recorded": len(members)}  # fmt: skip
        _record(db, "roll_call_votes", record)
        db.executemany(
            "INSERT INTO member_votes VALUES (?, ?, ?, NULL, ?, ?, 'Name', ?, ?, ?)",
            (
                (id, place, member, congress, f"{day}#{number:05}", parties[member],
                 states[member], chance.choice(("Yea", "Yea", "Nay", "Not Voting")))
                for place, member in enumerate(members, start=1)
            ),
        )  # fmt: skip


def _filings(db: sqlite3.Connection, size: Size, chance: random.Random) -> None:
    """Every filing has a client of its own until these run out; registrants are few."""
    clients = list(dict.fromkeys(filer(chance) for _ in range(size.filers * 2)))[: size.filers]
    firms = [f"{chance.choice(_STARTS)}{chance.choice(_ENDS)} Strategies" for _ in range(500)]
    names = []
    for number in range(max(size.filings, len(clients))):
        client = clients[number % len(clients)]
        day = date(2015, 1, 20) + timedelta(days=number * 3600 // size.filings)
        id = f"lda:{number:08}-0000-4000-8000-000000000000"
        record = {
            "id": id,
            "title": client,
            "type": chance.choice(("Q1", "Q2", "Q3", "Q4")),
            "year": day.year,
            "registrant": chance.choice(firms),
            "client": client,
            "published_at": day.isoformat(),
            "amount_cents": chance.randrange(500_000, 90_000_000),
            "activities": [{"issue_code": "TAX", "description": "tax matters " * 40}],
        }
        _record(db, "lda_filings", record)
        names.append((id, client))
    _names(db, "lda_filings", names)


def _record(db: sqlite3.Connection, source: str, record: dict[str, object]) -> None:
    db.execute(
        f"INSERT INTO {source} (id, record, loader) VALUES (?, ?, 'bench')",
        (record["id"], json.dumps(record)),
    )


def _names(db: sqlite3.Connection, source: str, names: list[tuple[str, str]]) -> None:
    rows: dict[str, int] = {}
    forms = []
    for id, name in names:
        folded = fold.pad(fold.words(name))
        row = rows.setdefault(folded, fold.first_row(source) + 1 + len(rows))
        forms.append((row, id, name))
    db.executemany(
        "INSERT INTO names (name_row, source, folded, initials) VALUES (?, ?, ?, ?)",
        ((row, source, folded, fold.initials(folded.split())) for folded, row in rows.items()),
    )
    db.executemany(
        "INSERT INTO names_fts (rowid, folded) VALUES (?, ?)",
        ((row, folded) for folded, row in rows.items()),
    )
    db.executemany("INSERT OR IGNORE INTO name_forms VALUES (?, ?, ?)", forms)


def questions(source: str, path: Path, count: int, seed: int = 5) -> Iterator[str]:
    """Names that are there, each with a letter changed; every third in another order."""
    chance = random.Random(seed)
    with closing(store.connect(path)) as db:
        (forms,) = db.execute("SELECT count(*) FROM names WHERE source = ?", (source,)).fetchone()
        for number in range(count):
            row = fold.first_row(source) + 1 + chance.randrange(forms)
            (name,) = db.execute(
                "SELECT form FROM name_forms WHERE name_row = ? LIMIT 1", (row,)
            ).fetchone()
            at = chance.randrange(1, len(name) - 1)
            spoilt = name[:at] + chance.choice("aeirst") + name[at + 1 :]
            words = spoilt.split()
            yield " ".join(reversed(words)) if number % 3 == 0 else spoilt
