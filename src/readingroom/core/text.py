"""Characters: those that mean the same written alike, those that command a terminal escaped."""

import re

DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
"""Every character that is read as a dash; it can stand in a character class as it is."""
_DASHES = dict.fromkeys(map(ord, DASHES), "-")
# Controls but for tabs and line ends, overrides of the direction of writing, halves of characters.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def fold_dashes(dashed_text: str) -> str:
    """Return the text with every Unicode dash as `-`.

    The Federal Register's own XML writes its numbers with U+2013.
    """
    return dashed_text if dashed_text.isascii() else dashed_text.translate(_DASHES)


def escape_controls(untrusted_text: str) -> str:
    """Return the text with what would command a terminal as `\\u001b`, which JSON reads as well."""
    return _COMMANDS.sub(lambda match: f"\\u{ord(match[0]):04x}", untrusted_text)
