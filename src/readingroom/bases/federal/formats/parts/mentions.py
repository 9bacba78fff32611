"""What a text names: bills and laws, each with the words around the name.

Made to be right rather than complete: what might be a street, a section or a form is passed over.
"""

import re
from collections.abc import Iterator

from readingroom.bases.federal.schema.entries import RecordLink
from readingroom.bases.federal.schema.ids import make_bill_id, make_law_id
from readingroom.bases.federal.schema.records import LinkKind
from readingroom.core.text import DASH_CHARACTERS, fold_dashes

# Each pattern begins with the letter it looks for and looks back from there: many times as fast.
# `S 5` without its stop is more often a form or a section than a bill, `U.S. 5` a court report,
# `12 S. 5th` an address, `S. 1.2` and `S. 1-2` a section.
_BILL_PATTERN = re.compile(
    r"([HS](?<![\w.§].)(?<!U\. .)(?<!\d .)"
    r"(?:(?<=H)\.?\s?R\.?|\.?\s?(?:J\.?\s?|C[Oo][Nn]\.?\s?)?R[Ee][Ss]\.?|(?<=S)\.))"
    r"\s?(?:No\.\s?)?([1-9]\d{0,4})(?!\w|-\d|\.\d|,\d{3})",
    re.ASCII,
)
# H.R. 1 (117th Congress), H.R. 1 of the 117th Congress, H.R. 1, 117th Cong.
_CONGRESS_AFTER_BILL_PATTERN = re.compile(
    r"[\s,(\[]*(?:of the\s+|in the\s+)?(\d{2,3})(?:st|nd|rd|th)\b", re.ASCII
)
_LAW_PATTERN = re.compile(
    rf"P(?<![\w.].)(?:\.?\s?L\.?|ub\.?\s?L\.?|ublic Law)\s?(?:No\.\s?)?"
    rf"(\d{{1,3}})[{DASH_CHARACTERS}]([1-9]\d{{0,3}})(?![{DASH_CHARACTERS}\w])",
    re.ASCII,
)
# Enough to see what is said of the bill: the words are stored as evidence with every link.
_QUOTED_CHARS_PER_SIDE = 80


def find_bill_links(
    whole_text: str, congress: int, link_kind: LinkKind, field_label: str
) -> Iterator[RecordLink]:
    """Yield the bills that a text names; of this Congress, unless the text states another."""
    for bill_match in _BILL_PATTERN.finditer(whole_text):
        congress_match = _CONGRESS_AFTER_BILL_PATTERN.match(whole_text, bill_match.end())
        bill_congress = int(congress_match[1]) if congress_match else congress
        assumption_note = "" if congress_match else f" (Congress {congress} by its date)"
        bill_id = make_bill_id(bill_congress, bill_match[1], bill_match[2])
        yield RecordLink(
            link_kind,
            bill_id,
            f"{field_label}: {_quote_mention(whole_text, bill_match)}{assumption_note}",
        )


def find_law_links(whole_text: str, link_kind: LinkKind, field_label: str) -> Iterator[RecordLink]:
    for law_match in _LAW_PATTERN.finditer(whole_text):
        quoted_text = fold_dashes(_quote_mention(whole_text, law_match))
        yield RecordLink(
            link_kind,
            make_law_id(f"{law_match[1]}-{law_match[2]}"),
            f"{field_label}: {quoted_text}",
        )


def _quote_mention(whole_text: str, mention_match: re.Match[str]) -> str:
    """The name where it stands, with a little of what is said around it."""
    start_offset, end_offset = (
        max(0, mention_match.start() - _QUOTED_CHARS_PER_SIDE),
        mention_match.end() + _QUOTED_CHARS_PER_SIDE,
    )
    return " ".join(whole_text[start_offset:end_offset].split())
