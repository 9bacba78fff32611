"""What a USLM document refers to: laws, the Code, regulations, the Register, as its links say."""

import re
from collections.abc import Callable, Iterable, Iterator
from xml.etree.ElementTree import Element

from readingroom.core.ids import cfr_id, fold_dashes, law_id

_LAW = re.compile(r"/us/pl/(\d+)/(\d+)(?:/.*)?")
_USC = re.compile(r"/us/usc/t(\w+)/s([^/]+)(?:/.*)?")
_CFR = re.compile(r"/us/cfr/t(\d+)/s([^/]+)(?:/.*)?")
_FR = re.compile(r"/us/fr/(\d+)/(\d+)")


def laws(told: Iterable[Element]) -> list[str]:
    """Ids of the public laws."""
    return _all(told, _LAW, lambda m: law_id(f"{m[1]}-{m[2]}"))


def code(told: Iterable[Element]) -> list[str]:
    """Sections of the United States Code: `22 U.S.C. 2778`."""
    return _all(told, _USC, lambda m: f"{m[1]} U.S.C. {m[2]}")


def regulations(told: Iterable[Element]) -> list[str]:
    """Ids of sections of the Code of Federal Regulations."""
    return _all(told, _CFR, lambda m: cfr_id(m[1], m[2]))


def register(told: Iterable[Element]) -> list[str]:
    """Pages of the Federal Register: `78 FR 23676`."""
    return _all(told, _FR, lambda m: f"{m[1]} FR {m[2]}")


def _all(
    told: Iterable[Element], pattern: re.Pattern[str], build: Callable[[re.Match[str]], str]
) -> list[str]:
    found = (pattern.fullmatch(href) for href in _hrefs(told))
    return list(dict.fromkeys(build(match) for match in found if match))


def _hrefs(told: Iterable[Element]) -> Iterator[str]:
    for element in told:
        for ref in element.iter("ref"):
            yield fold_dashes(ref.get("href") or "")
