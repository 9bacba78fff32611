"""Reads Rich Text Format: characters, paragraphs, cells and page breaks; nothing embedded."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from readingroom.ingest.document import ReadOptions, Refusal
from readingroom.ingest.read.page import RawPage
from readingroom.ingest.read.reflow import CELL_SEPARATOR, PageBuilder

_RTF_TOKEN_PATTERN = re.compile(
    rb"\\(?P<word>[a-zA-Z]{1,32})(?P<number>-?\d{1,10})? ?"
    rb"|\\'(?P<hex>[0-9a-fA-F]{2})"
    rb"|\\(?P<symbol>[^a-zA-Z])"
    rb"|(?P<brace>[{}])"
    rb"|[\r\n]+"
    rb"|(?P<text>[^\\{}\r\n]+)",
    re.DOTALL,
)
# What these groups hold is about the document and is not text of it.
_SKIPPED_GROUP_CONTROL_WORDS = frozenset(
    """
    fonttbl colortbl stylesheet listtable listoverridetable info pict object header headerl headerr
    headerf footer footerl footerr footerf filetbl revtbl rsidtbl generator themedata datastore
    colorschememapping latentstyles xmlnstbl fldinst annotation atnid atnauthor bkmkstart bkmkend
    nonshppict objdata
    """.split()  # noqa: SIM905 a list of this length is read as words
)
_TEXT_BY_CONTROL_WORD = {
    "par": "\n\n",
    "sect": "\n\n",
    "line": "\n",
    "tab": " ",
    "cell": CELL_SEPARATOR,
    "nestcell": CELL_SEPARATOR,
    "row": "\n",
    "nestrow": "\n",
    "page": "\f",
    "emdash": "—",
    "endash": "–",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
    "bullet": "•",
    "emspace": " ",
    "enspace": " ",
}
_TEXT_BY_CONTROL_SYMBOL = {
    "~": " ",
    "_": "-",
    "-": "",
    "\\": "\\",
    "{": "{",
    "}": "}",
    "\n": "\n\n",
    "\r": "\n\n",
}
_ENCODING_BY_CODE_PAGE = {
    437: "cp437",
    850: "cp850",
    932: "cp932",
    936: "cp936",
    949: "cp949",
    950: "cp950",
}
_MAX_GROUP_DEPTH = 500


@dataclass(frozen=True, slots=True)
class _GroupState:
    """What holds inside a group, and is restored when it ends."""

    is_skipped: bool = False
    is_hidden: bool = False
    fallback_length: int = 1
    """How many characters follow one in Unicode, for readers that know none."""


def read_rtf(file_bytes: bytes, file_name: str, read_options: ReadOptions) -> list[RawPage]:
    """Return the pages of a document; raise a `Refusal`."""
    page_builder = PageBuilder()
    for page_text in "".join(_iterate_text_runs(file_bytes)).split("\f"):
        for paragraph_text in page_text.split("\n\n"):
            page_builder.add_paragraph(paragraph_text.strip().removesuffix(CELL_SEPARATOR.rstrip()))
        page_builder.end_page()
    return page_builder.finish_pages()


def _iterate_text_runs(file_bytes: bytes) -> Iterator[str]:
    group_states = [_GroupState()]
    text_encoding = "cp1252"
    remaining_fallback_bytes = 0
    undecoded_bytes = bytearray()
    """Bytes in the document's own encoding; some of its characters take two."""
    is_group_start = False
    for token_match in _iterate_token_matches(file_bytes):
        control_word = (token_match["word"] or b"").decode("ascii")
        if undecoded_bytes and not token_match["hex"]:
            yield undecoded_bytes.decode(text_encoding, "replace")
            undecoded_bytes.clear()
        was_group_start, is_group_start = is_group_start, token_match["brace"] == b"{"
        group_state = group_states[-1]
        if token_match["brace"] == b"{":
            if len(group_states) > _MAX_GROUP_DEPTH:
                raise Refusal("extraction_failed", "The file nests its groups too deeply")
            group_states.append(group_state)
        elif token_match["brace"]:
            group_states = group_states[:-1] or [_GroupState()]
            remaining_fallback_bytes = 0
        elif token_match["symbol"] == b"*" and was_group_start:
            group_states[-1] = replace(
                group_state, is_skipped=True
            )  # a group that readers may ignore
        elif control_word in _SKIPPED_GROUP_CONTROL_WORDS and was_group_start:
            group_states[-1] = replace(group_state, is_skipped=True)
        elif control_word == "ansicpg":
            text_encoding = _determine_encoding(int(token_match["number"] or 1252))
        elif control_word == "uc":
            group_states[-1] = replace(group_state, fallback_length=int(token_match["number"] or 1))
        elif control_word in ("v", "deleted"):
            group_states[-1] = replace(group_state, is_hidden=token_match["number"] != b"0")
        elif group_state.is_skipped or group_state.is_hidden:
            continue
        elif control_word == "u" and token_match["number"]:
            yield _decode_unicode_number(int(token_match["number"]))
            remaining_fallback_bytes = group_state.fallback_length
        elif token_match["hex"]:
            if remaining_fallback_bytes:
                remaining_fallback_bytes -= 1
            else:
                undecoded_bytes.append(int(token_match["hex"], 16))
        elif token_match["text"]:
            token_bytes = token_match["text"][remaining_fallback_bytes:]
            remaining_fallback_bytes = max(0, remaining_fallback_bytes - len(token_match["text"]))
            yield _decode_unescaped_text(token_bytes, text_encoding)
        elif control_word:
            yield _TEXT_BY_CONTROL_WORD.get(control_word, "")
        elif token_match["symbol"]:
            yield _TEXT_BY_CONTROL_SYMBOL.get(token_match["symbol"].decode("latin-1"), "")
    if undecoded_bytes:
        yield undecoded_bytes.decode(text_encoding, "replace")


def _decode_unescaped_text(text_bytes: bytes, text_encoding: str) -> str:
    """Return text that is not escaped: by the rules it is ASCII, and some programs write UTF-8."""
    try:
        return text_bytes.decode("utf-8")
    except UnicodeDecodeError:
        return text_bytes.decode(text_encoding, "replace")


def _iterate_token_matches(file_bytes: bytes) -> Iterator[re.Match[bytes]]:
    byte_offset = 0
    while token_match := _RTF_TOKEN_PATTERN.match(file_bytes, byte_offset):
        yield token_match
        byte_offset = token_match.end()
        if token_match["word"] == b"bin":
            # So many bytes of data follow, which may look like anything.
            byte_offset += max(0, int(token_match["number"] or 0))


def _decode_unicode_number(code_number: int) -> str:
    """Return the character of a number that is written as a signed 16-bit one."""
    code_point = code_number % 0x10000
    # Halves of a pair are dropped later, as noise.
    return chr(code_point)


def _determine_encoding(code_page: int) -> str:
    if 1250 <= code_page <= 1258:
        return f"cp{code_page}"
    return "utf-8" if code_page == 65001 else _ENCODING_BY_CODE_PAGE.get(code_page, "cp1252")
