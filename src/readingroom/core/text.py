"""Characters that mean the same, written alike."""

DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
"""Every character that is read as a dash; it can stand in a character class as it is."""
_DASHES = dict.fromkeys(map(ord, DASHES), "-")


def fold_dashes(text: str) -> str:
    """Return the text with every Unicode dash as `-`.

    The Federal Register's own XML writes its numbers with U+2013.
    """
    return text if text.isascii() else text.translate(_DASHES)
