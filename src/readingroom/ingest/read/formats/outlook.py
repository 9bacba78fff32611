"""Reads messages of Outlook (.msg): the same of them as of other e-mail."""

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from mimetypes import guess_type

from readingroom.ingest.document import ReadOptions, Refusal
from readingroom.ingest.read.formats.mail import ContainedFile, make_message_pages
from readingroom.ingest.read.formats.office.compound import CompoundFile
from readingroom.ingest.read.page import RawPage

# Properties by their numbers in MAPI.
_SUBJECT_PROPERTY, _BODY_PROPERTY, _HTML_BODY_PROPERTY = 0x0037, 0x1000, 0x1013
_SENDER_NAME_PROPERTY, _SENDER_ADDRESS_PROPERTY, _SENDER_INTERNET_ADDRESS_PROPERTY = (
    0x0C1A,
    0x0C1F,
    0x5D01,
)
_RECIPIENTS_PROPERTY, _COPY_RECIPIENTS_PROPERTY = 0x0E04, 0x0E03
_SENT_AT_PROPERTY, _RECEIVED_AT_PROPERTY = 0x0039, 0x0E06
_CODE_PAGE_PROPERTIES = (0x3FFD, 0x3FDE)
(
    _ATTACHED_CONTENT_PROPERTY,
    _LONG_FILE_NAME_PROPERTY,
    _SHORT_FILE_NAME_PROPERTY,
    _DISPLAY_NAME_PROPERTY,
) = 0x3701, 0x3707, 0x3704, 0x3001
_CONTENT_ID_PROPERTY, _IS_HIDDEN_PROPERTY = 0x3712, 0x7FFE

_UNICODE_TYPE_CODE, _BYTES_TEXT_TYPE_CODE, _BINARY_TYPE_CODE, _STORAGE_TYPE_CODE = (
    "001F",
    "001E",
    "0102",
    "000D",
)
_PROPERTY_ENTRY_BYTES = 16
_TOP_MESSAGE_HEADER_BYTES, _EMBEDDED_MESSAGE_HEADER_BYTES, _ATTACHMENT_HEADER_BYTES = 32, 24, 8
_FILE_TIME_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_MAX_MESSAGE_DEPTH = 5
_MAX_ATTACHMENTS = 500


def read_msg(file_bytes: bytes, file_name: str, read_options: ReadOptions) -> list[RawPage]:
    """Return a message as one page; raise a `Refusal`."""
    outlook_message = _OutlookMessage(_open_message(file_bytes))
    attachment_names = [attached_file.name for attached_file in outlook_message.list_attachments()]
    mail_headers, plain_text, html_text = (
        outlook_message.headers,
        outlook_message.plain_text,
        outlook_message.html_text,
    )
    plain_texts = [plain_text] if plain_text.strip() else []
    return make_message_pages(mail_headers, plain_texts, [html_text], attachment_names)


def list_msg_attachments(file_bytes: bytes) -> list[ContainedFile]:
    """Return the files attached to a message, and messages attached to it; raise a `Refusal`."""
    return _OutlookMessage(_open_message(file_bytes)).list_attachments()


def _open_message(file_bytes: bytes) -> CompoundFile:
    compound_file = CompoundFile(file_bytes)
    if ("__properties_version1.0",) not in compound_file.stream_paths:
        raise Refusal(
            "extraction_failed", "The file is named .msg, but holds no message of Outlook"
        )
    return compound_file


class _OutlookMessage:
    """A message, or one that is attached to another."""

    def __init__(
        self,
        compound_file: CompoundFile,
        storage_path: tuple[str, ...] = (),
        message_depth: int = 0,
    ) -> None:
        self._compound_file = compound_file
        self._storage_path = storage_path
        self._depth = message_depth
        header_byte_count = (
            _EMBEDDED_MESSAGE_HEADER_BYTES if storage_path else _TOP_MESSAGE_HEADER_BYTES
        )
        self._values_by_property_number = _read_fixed_property_values(
            compound_file, storage_path, header_byte_count
        )
        self._encoding = self._determine_encoding()

    @property
    def headers(self) -> list[tuple[str, str]]:
        sender_name = self._read_text_property(_SENDER_NAME_PROPERTY)
        sender_address = self._read_text_property(
            _SENDER_INTERNET_ADDRESS_PROPERTY
        ) or self._read_text_property(_SENDER_ADDRESS_PROPERTY)
        has_address = "@" in sender_address and sender_address != sender_name
        sender_text = f"{sender_name} <{sender_address}>".strip() if has_address else sender_name
        return [
            ("From", sender_text),
            ("To", self._read_text_property(_RECIPIENTS_PROPERTY)),
            ("Cc", self._read_text_property(_COPY_RECIPIENTS_PROPERTY)),
            ("Date", self._read_sent_date()),
            ("Subject", self._read_text_property(_SUBJECT_PROPERTY)),
        ]

    @property
    def plain_text(self) -> str:
        return self._read_text_property(_BODY_PROPERTY)

    @property
    def html_text(self) -> str:
        html_bytes = self._compound_file.read_stream(
            *self._storage_path, _make_stream_name(_HTML_BODY_PROPERTY, _BINARY_TYPE_CODE)
        )
        if html_bytes:
            return html_bytes.decode(self._encoding, "replace")
        return self._read_text_property(_HTML_BODY_PROPERTY)

    def list_attachments(self) -> list[ContainedFile]:
        return [*self._iterate_attachments()]

    def _iterate_attachments(self) -> Iterator[ContainedFile]:
        storage_path_length = len(self._storage_path)
        attachment_storage_names = sorted(
            {
                stream_path[storage_path_length]
                for stream_path in self._compound_file.stream_paths
                if stream_path[:storage_path_length] == self._storage_path
                and len(stream_path) > storage_path_length + 1
                and stream_path[storage_path_length].startswith("__attach_version1.0_")
            }
        )
        if len(attachment_storage_names) > _MAX_ATTACHMENTS:
            raise Refusal("extraction_failed", "The message has too many attachments")
        for attachment_storage_name in attachment_storage_names:
            attached_file = self._find_attached_file((*self._storage_path, attachment_storage_name))
            if attached_file is not None:
                yield attached_file

    def _find_attached_file(self, storage_path: tuple[str, ...]) -> ContainedFile | None:
        values_by_property_number = _read_fixed_property_values(
            self._compound_file, storage_path, _ATTACHMENT_HEADER_BYTES
        )
        is_inline_picture = values_by_property_number.get(
            _IS_HIDDEN_PROPERTY
        ) and self._read_text_property(_CONTENT_ID_PROPERTY, storage_path)
        if is_inline_picture:
            return None
        attachment_name = (
            self._read_text_property(_LONG_FILE_NAME_PROPERTY, storage_path)
            or self._read_text_property(_SHORT_FILE_NAME_PROPERTY, storage_path)
            or self._read_text_property(_DISPLAY_NAME_PROPERTY, storage_path)
            or "attachment"
        )
        content_stream_name = _make_stream_name(_ATTACHED_CONTENT_PROPERTY, _BINARY_TYPE_CODE)
        if (*storage_path, content_stream_name) in self._compound_file.stream_paths:
            return ContainedFile(
                attachment_name, self._compound_file.read_stream(*storage_path, content_stream_name)
            )
        inner_message_path = (
            *storage_path,
            _make_stream_name(_ATTACHED_CONTENT_PROPERTY, _STORAGE_TYPE_CODE),
        )
        if (*inner_message_path, "__properties_version1.0") not in self._compound_file.stream_paths:
            return None  # an object that only the program that made it can open
        if self._depth >= _MAX_MESSAGE_DEPTH:
            raise Refusal("extraction_failed", "Messages are attached to each other too deeply")
        inner_message = _OutlookMessage(self._compound_file, inner_message_path, self._depth + 1)
        return ContainedFile(f"{attachment_name.removesuffix('.msg')}.eml", inner_message.to_eml())

    def to_eml(self) -> bytes:
        """Return the message in the common format of e-mail."""
        email_message = EmailMessage()
        for header_name, header_value in self.headers:
            if header_value:
                email_message[header_name] = " ".join(header_value.split())
        email_message.set_content(self.plain_text)
        if self.html_text and not self.plain_text.strip():
            email_message.set_content(self.html_text, subtype="html")
        for attached_file in self._iterate_attachments():
            media_type = guess_type(attached_file.name)[0] or "application/octet-stream"
            main_type, _, sub_type = media_type.partition("/")
            if main_type in ("message", "text", "multipart"):
                main_type, sub_type = "application", "octet-stream"
            email_message.add_attachment(
                attached_file.content, main_type, sub_type, filename=attached_file.name
            )
        return email_message.as_bytes()

    def _determine_encoding(self) -> str:
        for code_page_property_number in _CODE_PAGE_PROPERTIES:
            code_page = self._values_by_property_number.get(code_page_property_number, 0)
            if code_page == 65001:
                return "utf-8"
            if 1250 <= code_page <= 1258:
                return f"cp{code_page}"
        return "cp1252"

    def _read_text_property(
        self, property_number: int, storage_path: tuple[str, ...] | None = None
    ) -> str:
        storage_path = self._storage_path if storage_path is None else storage_path
        unicode_bytes = self._compound_file.read_stream(
            *storage_path, _make_stream_name(property_number, _UNICODE_TYPE_CODE)
        )
        if unicode_bytes:
            return unicode_bytes.decode("utf-16-le", "replace").rstrip("\x00")
        text_bytes = self._compound_file.read_stream(
            *storage_path, _make_stream_name(property_number, _BYTES_TEXT_TYPE_CODE)
        )
        return text_bytes.decode(self._encoding, "replace").rstrip("\x00")

    def _read_sent_date(self) -> str:
        tick_count = (
            self._values_by_property_number.get(_SENT_AT_PROPERTY)
            or self._values_by_property_number.get(_RECEIVED_AT_PROPERTY)
            or 0
        )
        try:
            # These dates count tenths of a microsecond.
            sent_moment = _FILE_TIME_EPOCH + timedelta(microseconds=tick_count // 10)
        except OverflowError:
            return ""
        return f"{sent_moment:%a, %d %b %Y %H:%M:%S +0000}" if tick_count else ""


def _make_stream_name(property_number: int, type_code: str) -> str:
    return f"__substg1.0_{property_number:04X}{type_code}"


def _read_fixed_property_values(
    compound_file: CompoundFile, storage_path: tuple[str, ...], header_byte_count: int
) -> dict[int, int]:
    """Return the properties of fixed size, as numbers."""
    property_bytes = compound_file.read_stream(*storage_path, "__properties_version1.0")[
        header_byte_count:
    ]
    values_by_property_number: dict[int, int] = {}
    for entry_offset in range(
        0, len(property_bytes) - _PROPERTY_ENTRY_BYTES + 1, _PROPERTY_ENTRY_BYTES
    ):
        _, property_number, _, property_value = struct.unpack_from(
            "<HHIQ", property_bytes, entry_offset
        )
        values_by_property_number[property_number] = property_value
    return values_by_property_number
