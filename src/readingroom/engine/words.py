"""Words as a lexical index has them: which of a question tell something, and what parts them."""

import re
from collections.abc import Iterator
from unicodedata import ucd_3_2_0

MOST = 64
"""Words of a question that are looked at."""

_WORD = re.compile(r"[^\W_]+")
_SYMBOL = re.compile(r"[^\w\s\x00-\u036f]")
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


def without_new_symbols(text: str) -> str:
    """The text as an index should have it, so that a word with an emoji behind it is that word.

    SQLite knows an older Unicode, and takes what it does not know for a letter.
    """
    return _SYMBOL.sub(lambda one: " " if ucd_3_2_0.category(one[0]) == "Cn" else one[0], text)


def _words(question: str) -> Iterator[str]:
    # A question of a million characters is not read to its end.
    for match in _WORD.finditer(question[:20_000]):
        yield match.group().lower()
