"""What a USLM document refers to: laws, the Code, regulations, the Register, as its links say."""

import re
from collections.abc import Callable, Iterable, Iterator
from xml.etree.ElementTree import Element

from readingroom.core.ids import cfr_id, fold_dashes, law_id

_LAW = re.compile(r"/us/pl/(\d+)/(\d+)(?:/.*)?")
_USC = re.compile(r"/us/usc/t(\w+)/s([^/]+)(?:/.*)?")
_CFR = re.compile(r"/us/cfr/t(\d+)/s([^/]+)(?:/.*)?")
_WHOLE_SECTION = re.compile(r"/us/cfr/t\d+/s[^/]+")
_CUT = re.compile(r"-\d+[a-z]?(?![\w]|\.\d)")  # not -479.39, the end of a range
_AFTER = 60
_FR = re.compile(r"/us/fr/(\d+)/(\d+)")


def laws(told: Iterable[Element]) -> list[str]:
    """Ids of the public laws."""
    return _all(told, _LAW, lambda m: law_id(f"{m[1]}-{m[2]}"))


def code(told: Iterable[Element]) -> list[str]:
    """Sections of the United States Code: `22 U.S.C. 2778`."""
    return _all(told, _USC, lambda m: f"{m[1]} U.S.C. {m[2]}")


def regulations(told: Iterable[Element]) -> list[str]:
    """Ids of sections of the Code of Federal Regulations."""
    return list(regulations_in_words(told))


def regulations_in_words(told: Iterable[Element]) -> dict[str, str]:
    """The same, each with the words that first name it."""
    return _words(told, _CFR, lambda m: cfr_id(m[1], m[2]))


def register(told: Iterable[Element]) -> list[str]:
    """Pages of the Federal Register: `78 FR 23676`."""
    return _all(told, _FR, lambda m: f"{m[1]} FR {m[2]}")


def _all(
    told: Iterable[Element], pattern: re.Pattern[str], build: Callable[[re.Match[str]], str]
) -> list[str]:
    return list(_words(told, pattern, build))


def _words(
    told: Iterable[Element], pattern: re.Pattern[str], build: Callable[[re.Match[str]], str]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for href, words in _references(told):
        if match := pattern.fullmatch(href):
            found.setdefault(build(match), words)
    return found


def _references(told: Iterable[Element]) -> Iterator[tuple[str, str]]:
    for element in told:
        for ref in element.iter("ref"):
            href, after = fold_dashes(ref.get("href") or ""), fold_dashes(ref.tail or "")
            # The official markup ends the number of a section at its dash: 17 CFR 240.19b|-4.
            cut = _CUT.match(after) if _WHOLE_SECTION.fullmatch(href) else None
            words = " ".join(("".join(ref.itertext()) + after[:_AFTER]).split())
            yield (href + cut[0] if cut else href), words
