"""Words as a lexical index has them: which of a question tell something, and what parts them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from unicodedata import category, normalize, ucd_3_2_0

MOST = 64
"""Words of a question that are looked at."""
_READ = 20_000
"""Characters of it that are read, were it a million."""

_QUOTED = re.compile(r"""(?<!\w)(?:"([^"]+)"|“([^“”]+)”)(?!\w)""")
_WORD = re.compile(r"[^\W_]+")
_NO_LETTER = re.compile(r"[^\w\s]")
# Where newer signs may be: not in the large blocks that hold letters alone, or nothing.
_BLOCKS = (
    (0x80, 0x3400),
    (0x4DC0, 0x4E00),
    (0xA000, 0xAC00),
    (0xF900, 0x20000),
    (0xE0100, 0xE01F0),
)
# Where PDFs have those of their symbol fonts.
_BULLETS = "".join(map(chr, range(0xF020, 0xF100)))
# Words that stand in nearly every English text, and the pieces that apostrophes leave.
_EMPTY = frozenset(
    _WORD.findall(
        """
        a about above after again all also am an and any are as at be because been before being
        below between both but by can could did do does doing down during each few for from
        further get had has have having he her here hers herself him himself his how i if in
        into is it its itself just let me might more most must my myself no nor not now of off
        on once only or other our ours ourselves out over own same shall she should so some such
        than that the their theirs them themselves then there these they this those through to
        too under until up upon us very was we were what when where which while who whom whose
        why will with would you your yours yourself yourselves d ll m re s t ve
        """
    )
)


@dataclass(frozen=True, slots=True)
class Sought:
    """What a question looks for: phrases, which stand in quotation marks, and words."""

    phrases: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def match(self) -> str | None:
        """For FTS5. A text must have one of the phrases, if there are any, and the words only rank
        it; else any of the words. All are quoted, so that no text of a user's is ever syntax.
        """
        either = _any_of((*self.phrases, *self.words))
        if self.phrases and self.words:
            return f"({_any_of(self.phrases)}) AND ({either})"
        return either or None


def sought(question: str) -> Sought:
    """What to look for. A quotation mark without its other one is none."""
    question = question[:_READ]
    phrases: list[str] = []
    left = MOST
    for quoted in _QUOTED.finditer(question):
        said = list(_words(quoted[1] or quoted[2]))[:left]
        left -= len(said)
        phrases += [" ".join(said)] if said else []
    words = _telling(_words(_QUOTED.sub(" ", question)), or_all=not phrases)
    return Sought(tuple(dict.fromkeys(phrases)), tuple(words[:left]))


def words_of(question: str) -> list[str]:
    """All its words, each once, those in quotation marks too."""
    return _telling(_words(question[:_READ]), or_all=True)[:MOST]


def _any_of(texts: Iterable[str]) -> str:
    return " OR ".join(f'"{text}"' for text in texts)


def _telling(words: Iterable[str], or_all: bool) -> list[str]:
    """Without empty words. A question of nothing else is taken at its word."""
    found = list(dict.fromkeys(words))
    telling = [word for word in found if word not in _EMPTY]
    return telling or (found if or_all else [])


@cache
def tokenizer() -> str:
    """How FTS5 is to cut texts, so that a word with an emoji or a bullet behind it is that word.

    SQLite knows an older Unicode, and takes for letters what it does not know.
    """
    signs = "".join(chr(code) for block in _BLOCKS for code in range(*block))
    newer = (sign for sign in _NO_LETTER.findall(signs) if ucd_3_2_0.category(sign) == "Cn")
    known = "".join(sign for sign in newer if category(sign) != "Cn")
    return f"porter unicode61 separators '{known}{_BULLETS}'"


def _words(text: str) -> Iterator[str]:
    # An accent may come as a sign of its own, which is no letter.
    for match in _WORD.finditer(normalize("NFC", text)):
        yield match.group().lower()
