"""Words as a lexical index has them: which of a question tell something, and what parts them."""

import re
from collections.abc import Iterator
from functools import cache
from unicodedata import category, ucd_3_2_0

MOST = 64
"""Words of a question that are looked at."""

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


def words_of(question: str) -> list[str]:
    """The words to look for, each once. A question of empty words alone is taken at its word."""
    found = list(dict.fromkeys(_words(question)))
    telling = [word for word in found if word not in _EMPTY]
    return (telling or found)[:MOST]


@cache
def tokenizer() -> str:
    """How FTS5 is to cut texts, so that a word with an emoji or a bullet behind it is that word.

    SQLite knows an older Unicode, and takes for letters what it does not know.
    """
    signs = "".join(chr(code) for block in _BLOCKS for code in range(*block))
    newer = (sign for sign in _NO_LETTER.findall(signs) if ucd_3_2_0.category(sign) == "Cn")
    known = "".join(sign for sign in newer if category(sign) != "Cn")
    return f"porter unicode61 separators '{known}{_BULLETS}'"


def _words(question: str) -> Iterator[str]:
    # A question of a million characters is not read to its end.
    for match in _WORD.finditer(question[:20_000]):
        yield match.group().lower()
