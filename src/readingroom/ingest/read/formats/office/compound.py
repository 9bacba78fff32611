"""Opens compound files, the older container of Office, and reads the .doc files of Word 97."""

import io
import re
import struct
from collections.abc import Iterator

import olefile

from readingroom.ingest.document import ReadOptions, Refusal
from readingroom.ingest.read.page import RawPage
from readingroom.ingest.read.reflow import CELL_SEPARATOR, PageBuilder

_WORD_MAGIC_NUMBER = 0xA5EC
_ENCRYPTED_FLAG, _SECOND_TABLE_STREAM_FLAG = 0x0100, 0x0200
_TEXT_LENGTHS_OFFSET = 0x4C
_PIECE_TABLE_OFFSET = 0x01A2
_ONE_BYTE_CHARACTERS_FLAG = 0x4000_0000
_FORMATTING_RECORD_TYPE, _PIECE_TABLE_RECORD_TYPE = 1, 2
_MAX_STREAM_BYTES = 256 * 2**20
_FIELD_MARK_PATTERN = re.compile("[\x13\x14\x15]")
_PLAIN_TEXT_BY_CONTROL_CHARACTER = str.maketrans(
    {
        "\r": "\n\n",
        "\x0b": "\n",
        "\x07": CELL_SEPARATOR,
        "\x0e": "\n\n",
        "\x1e": "-",
        "\x1f": "",
        "\x01": "",
        "\x02": "",
        "\x05": "",
        "\x08": "",
    }
)


class CompoundFile:
    """A compound file in memory: streams by their paths."""

    def __init__(self, file_bytes: bytes) -> None:
        """Raise a `Refusal` for a damaged file."""
        try:
            self._file = olefile.OleFileIO(io.BytesIO(file_bytes))
        except (OSError, ValueError, TypeError, IndexError, struct.error) as error:
            raise Refusal(
                "extraction_failed", "The file is damaged, or ends early: fetch it again"
            ) from error
        self.stream_paths = {
            tuple(stream_path) for stream_path in self._file.listdir(streams=True, storages=False)
        }

    def read_stream(self, *stream_path: str) -> bytes:
        """Return a stream, empty if there is none; raise a `Refusal`."""
        if stream_path not in self.stream_paths:
            return b""
        try:
            if self._file.get_size(list(stream_path)) > _MAX_STREAM_BYTES:
                raise Refusal("extraction_failed", "A part of the file is too large")
            stream_bytes: bytes = self._file.openstream(list(stream_path)).read()
        except (OSError, ValueError, TypeError, IndexError, struct.error) as error:
            raise Refusal("extraction_failed", "The file is damaged") from error
        return stream_bytes


def read_doc(file_bytes: bytes, file_name: str, read_options: ReadOptions) -> list[RawPage]:
    """Return the pages of a Word 97 document; raise a `Refusal`."""
    compound_file = CompoundFile(file_bytes)
    if ("EncryptedPackage",) in compound_file.stream_paths:
        raise make_encryption_refusal()
    document_stream = compound_file.read_stream("WordDocument")
    if not document_stream:
        raise Refusal(
            "extraction_failed",
            "The file is not a Word document, though it is named like one. Save it as PDF",
        )
    try:
        word_text = _read_word_text(compound_file, document_stream)
    except (struct.error, IndexError) as error:
        raise Refusal("extraction_failed", "The Word document is damaged") from error
    page_builder = PageBuilder()
    for page_text in _drop_field_codes(word_text).split("\x0c"):
        for paragraph_text in page_text.translate(_PLAIN_TEXT_BY_CONTROL_CHARACTER).split("\n\n"):
            page_builder.add_paragraph(paragraph_text.strip(CELL_SEPARATOR))
        page_builder.end_page()
    return page_builder.finish_pages()


def make_encryption_refusal() -> Refusal:
    """Return the refusal of an office file that asks for a password."""
    return Refusal(
        "extraction_failed", "The file is encrypted and does not open without its password"
    )


def _read_word_text(compound_file: CompoundFile, document_stream: bytes) -> str:
    """Return the main text and the footnotes, put together from the pieces they are stored in."""
    magic_number, format_version = struct.unpack_from("<HH", document_stream)
    (header_flags,) = struct.unpack_from("<H", document_stream, 0x0A)
    if magic_number != _WORD_MAGIC_NUMBER or format_version < 0x00C1:
        raise Refusal(
            "extraction_failed", "The document is older than Word 97. Save it as PDF or .docx"
        )
    if header_flags & _ENCRYPTED_FLAG:
        raise make_encryption_refusal()
    text_length, footnotes_length = struct.unpack_from("<ii", document_stream, _TEXT_LENGTHS_OFFSET)
    piece_records_offset, piece_records_length = struct.unpack_from(
        "<ii", document_stream, _PIECE_TABLE_OFFSET
    )
    table_stream = compound_file.read_stream(
        "1Table" if header_flags & _SECOND_TABLE_STREAM_FLAG else "0Table"
    )
    piece_table = _get_piece_table(
        table_stream[piece_records_offset : piece_records_offset + piece_records_length]
    )
    word_text = "".join(_iterate_text_pieces(piece_table, document_stream))
    return word_text[: max(0, text_length) + max(0, footnotes_length)]


def _get_piece_table(piece_table_bytes: bytes) -> bytes:
    record_offset = 0
    while record_offset < len(piece_table_bytes):
        if piece_table_bytes[record_offset] == _PIECE_TABLE_RECORD_TYPE:
            (record_length,) = struct.unpack_from("<I", piece_table_bytes, record_offset + 1)
            return piece_table_bytes[record_offset + 5 : record_offset + 5 + record_length]
        if piece_table_bytes[record_offset] != _FORMATTING_RECORD_TYPE:
            break
        (record_length,) = struct.unpack_from("<H", piece_table_bytes, record_offset + 1)
        record_offset += 3 + record_length
    raise Refusal("extraction_failed", "The Word document is damaged")


def _iterate_text_pieces(piece_table: bytes, document_stream: bytes) -> Iterator[str]:
    piece_count = (len(piece_table) - 4) // 12
    character_positions = struct.unpack_from(f"<{piece_count + 1}I", piece_table)
    # Pieces of a sound file do not overlap, so together they are no longer than the file.
    remaining_byte_count = len(document_stream)
    for piece_index in range(piece_count):
        character_count = character_positions[piece_index + 1] - character_positions[piece_index]
        offset_in_table = 4 * (piece_count + 1) + 8 * piece_index
        _, encoded_piece_offset, _ = struct.unpack_from("<HIH", piece_table, offset_in_table)
        has_one_byte_characters = bool(encoded_piece_offset & _ONE_BYTE_CHARACTERS_FLAG)
        piece_offset = (encoded_piece_offset & ~_ONE_BYTE_CHARACTERS_FLAG) // (
            2 if has_one_byte_characters else 1
        )
        byte_length = max(0, character_count) * (1 if has_one_byte_characters else 2)
        remaining_byte_count -= byte_length
        if remaining_byte_count < 0:
            raise Refusal("extraction_failed", "The Word document is damaged")
        piece_encoding = "cp1252" if has_one_byte_characters else "utf-16-le"
        yield document_stream[piece_offset : piece_offset + byte_length].decode(
            piece_encoding, "replace"
        )


def _drop_field_codes(marked_text: str) -> str:
    """Return the text with the results of fields, without the instructions that computed them."""
    text_pieces: list[str] = []
    is_in_result_stack: list[bool] = []
    """For each field around, whether its result is being read."""
    text_start_offset = 0
    for field_mark_match in [*_FIELD_MARK_PATTERN.finditer(marked_text), None]:
        text_end_offset = field_mark_match.start() if field_mark_match else len(marked_text)
        if all(is_in_result_stack):
            text_pieces.append(marked_text[text_start_offset:text_end_offset])
        if field_mark_match is None:
            break
        text_start_offset = field_mark_match.end()
        if field_mark_match[0] == "\x13":
            is_in_result_stack.append(False)
        elif is_in_result_stack and field_mark_match[0] == "\x14":
            is_in_result_stack[-1] = True
        elif is_in_result_stack:
            is_in_result_stack.pop()
    return "".join(text_pieces)
