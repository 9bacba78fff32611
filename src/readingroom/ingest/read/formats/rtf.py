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
_SKIPPED_GROUP_WORDS = frozenset(
    """
    fonttbl colortbl stylesheet listtable listoverridetable info pict object header headerl headerr
    headerf footer footerl footerr footerf filetbl revtbl rsidtbl generator themedata datastore
    colorschememapping latentstyles xmlnstbl fldinst annotation atnid atnauthor bkmkstart bkmkend
    nonshppict objdata
    """.split()  # noqa: SIM905 a list of this length is read as words
)
_TEXT_BY_BREAK_WORD = {
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
_TEXT_BY_SYMBOL = {
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
    fallback_bytes_left = 0
    raw_bytes = bytearray()
    """Bytes in the document's own encoding; some of its characters take two."""
    is_group_start = False
    for rtf_token in _iterate_tokens(file_bytes):
        control_word = (rtf_token["word"] or b"").decode("ascii")
        if raw_bytes and not rtf_token["hex"]:
            yield raw_bytes.decode(text_encoding, "replace")
            raw_bytes.clear()
        was_group_start, is_group_start = is_group_start, rtf_token["brace"] == b"{"
        group_state = group_states[-1]
        if rtf_token["brace"] == b"{":
            if len(group_states) > _MAX_GROUP_DEPTH:
                raise Refusal("extraction_failed", "The file nests its groups too deeply")
            group_states.append(group_state)
        elif rtf_token["brace"]:
            group_states = group_states[:-1] or [_GroupState()]
            fallback_bytes_left = 0
        elif rtf_token["symbol"] == b"*" and was_group_start:
            group_states[-1] = replace(
                group_state, is_skipped=True
            )  # a group that readers may ignore
        elif control_word in _SKIPPED_GROUP_WORDS and was_group_start:
            group_states[-1] = replace(group_state, is_skipped=True)
        elif control_word == "ansicpg":
            text_encoding = _find_encoding(int(rtf_token["number"] or 1252))
        elif control_word == "uc":
            group_states[-1] = replace(group_state, fallback_length=int(rtf_token["number"] or 1))
        elif control_word in ("v", "deleted"):
            group_states[-1] = replace(group_state, is_hidden=rtf_token["number"] != b"0")
        elif group_state.is_skipped or group_state.is_hidden:
            continue
        elif control_word == "u" and rtf_token["number"]:
            yield _decode_unicode(int(rtf_token["number"]))
            fallback_bytes_left = group_state.fallback_length
        elif rtf_token["hex"]:
            if fallback_bytes_left:
                fallback_bytes_left -= 1
            else:
                raw_bytes.append(int(rtf_token["hex"], 16))
        elif rtf_token["text"]:
            token_text = rtf_token["text"][fallback_bytes_left:]
            fallback_bytes_left = max(0, fallback_bytes_left - len(rtf_token["text"]))
            yield _decode_raw_text(token_text, text_encoding)
        elif control_word:
            yield _TEXT_BY_BREAK_WORD.get(control_word, "")
        elif rtf_token["symbol"]:
            yield _TEXT_BY_SYMBOL.get(rtf_token["symbol"].decode("latin-1"), "")
    if raw_bytes:
        yield raw_bytes.decode(text_encoding, "replace")


def _decode_raw_text(text_bytes: bytes, text_encoding: str) -> str:
    """Return text that is not escaped: by the rules it is ASCII, and some programs write UTF-8."""
    try:
        return text_bytes.decode("utf-8")
    except UnicodeDecodeError:
        return text_bytes.decode(text_encoding, "replace")


def _iterate_tokens(file_bytes: bytes) -> Iterator[re.Match[bytes]]:
    byte_offset = 0
    while rtf_token := _RTF_TOKEN_PATTERN.match(file_bytes, byte_offset):
        yield rtf_token
        byte_offset = rtf_token.end()
        if rtf_token["word"] == b"bin":
            # So many bytes of data follow, which may look like anything.
            byte_offset += max(0, int(rtf_token["number"] or 0))


def _decode_unicode(code_number: int) -> str:
    """Return the character of a number that is written as a signed 16-bit one."""
    code_point = code_number % 0x10000
    # Halves of a pair are dropped later, as noise.
    return chr(code_point)


def _find_encoding(code_page: int) -> str:
    if 1250 <= code_page <= 1258:
        return f"cp{code_page}"
    return "utf-8" if code_page == 65001 else _ENCODING_BY_CODE_PAGE.get(code_page, "cp1252")
