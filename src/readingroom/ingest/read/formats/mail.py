"""Reads e-mail (.eml): who wrote to whom, when, the text, and the files that are attached."""

import email.policy
from collections.abc import Iterator
from dataclasses import dataclass
from email.errors import MessageError
from email.message import EmailMessage
from email.parser import BytesParser
from typing import cast

from readingroom.ingest.document import ReadOptions, Refusal
from readingroom.ingest.read.formats.plain import add_paragraphs
from readingroom.ingest.read.formats.web import add_html
from readingroom.ingest.read.page import RawPage
from readingroom.ingest.read.reflow import PageBuilder

_SHOWN_HEADER_NAMES = ("From", "To", "Cc", "Date", "Subject")
_MAX_HEADER_CHARS = 2_000
_MAX_MESSAGE_PARTS = 2_000


@dataclass(frozen=True, slots=True)
class ContainedFile:
    """A file inside another: attached to a message, or packed in an archive."""

    name: str
    content: bytes


def read_eml(file_bytes: bytes, file_name: str, read_options: ReadOptions) -> list[RawPage]:
    """Return a message as one page; raise a `Refusal`."""
    email_message = _parse_message(file_bytes)
    header_names_and_values = [
        (header_name, _get_header_text(email_message, header_name))
        for header_name in _SHOWN_HEADER_NAMES
    ]
    plain_texts: list[str] = []
    html_texts: list[str] = []
    for message_part in _iterate_message_parts(email_message):
        if not _is_attachment(message_part):
            match message_part.get_content_type():
                case "text/plain":
                    plain_texts.append(_decode_part(message_part))
                case "text/html":
                    html_texts.append(_decode_part(message_part))
    attachment_names = [attached_file.name for attached_file in list_attachments(file_bytes)]
    # Programs send the same text in both forms, and the plain one needs no interpretation.
    has_plain_text = any(plain_text.strip() for plain_text in plain_texts)
    return make_message_pages(
        header_names_and_values, plain_texts if has_plain_text else [], html_texts, attachment_names
    )


def make_message_pages(
    header_names_and_values: list[tuple[str, str]],
    plain_texts: list[str],
    html_texts: list[str],
    attachment_names: list[str],
) -> list[RawPage]:
    """Return a message as one page: its headers, its text, the names of what is attached."""
    page_builder = PageBuilder()
    if attachment_names:
        header_names_and_values = [
            *header_names_and_values,
            ("Attachments", ", ".join(attachment_names)),
        ]
    page_builder.add_paragraph(
        "\n".join(
            f"{header_name}: {header_value}"
            for header_name, header_value in header_names_and_values
            if header_value
        )
    )
    for plain_text in plain_texts:
        add_paragraphs(plain_text, page_builder)
    if not plain_texts:
        for html_text in html_texts:
            add_html(html_text, page_builder)
    return page_builder.finish_pages()


def list_attachments(file_bytes: bytes) -> list[ContainedFile]:
    """Return the files attached to a message, and messages attached to it; raise a `Refusal`."""
    attached_files = []
    for message_part in _iterate_message_parts(_parse_message(file_bytes)):
        if not _is_attachment(message_part):
            continue
        if message_part.get_content_type() == "message/rfc822":
            inner_message = cast(EmailMessage, message_part.get_payload(0))
            inner_subject = _get_header_text(inner_message, "Subject")
            attachment_name = message_part.get_filename() or f"{inner_subject or 'message'}.eml"
            attached_files.append(ContainedFile(attachment_name, _serialize_message(inner_message)))
        else:
            part_payload = message_part.get_payload(decode=True)
            content_bytes = part_payload if isinstance(part_payload, bytes) else b""
            attached_files.append(
                ContainedFile(message_part.get_filename() or "attachment", content_bytes)
            )
    return attached_files


def _parse_message(file_bytes: bytes) -> EmailMessage:
    try:
        email_message = BytesParser(policy=email.policy.default).parsebytes(file_bytes)
    except RecursionError as error:
        raise _make_nesting_refusal() from error
    if not email_message.keys() or not any(
        email_message.get(header_name) for header_name in ("From", "Date", "Subject")
    ):
        raise Refusal(
            "extraction_failed", "The file is named .eml, but does not begin with mail headers"
        )
    return email_message


def _iterate_message_parts(email_message: EmailMessage) -> Iterator[EmailMessage]:
    """Yield the parts of a message that have content, not those of messages attached to it."""
    unvisited_parts: list[EmailMessage] = [email_message]
    part_count = 0
    while unvisited_parts:
        message_part = unvisited_parts.pop()
        part_count += 1
        if part_count > _MAX_MESSAGE_PARTS:
            raise _make_nesting_refusal()
        if message_part.get_content_maintype() == "multipart":
            part_payload = message_part.get_payload()
            if isinstance(part_payload, list):
                unvisited_parts += reversed(part_payload)  # type: ignore[arg-type]
        else:
            yield message_part


def _is_attachment(message_part: EmailMessage) -> bool:
    """Whether a part is a file of its own, not the text nor a picture shown in it."""
    if message_part.get_content_type() == "message/rfc822":
        return True
    content_disposition = message_part.get_content_disposition()
    is_inline_picture = (
        message_part.get_content_maintype() == "image" and "Content-ID" in message_part
    )
    if is_inline_picture and content_disposition != "attachment":
        return False
    return content_disposition == "attachment" or message_part.get_filename() is not None


def _decode_part(message_part: EmailMessage) -> str:
    try:
        return str(message_part.get_content())
    except (LookupError, UnicodeError, ValueError):  # an encoding that nobody knows
        part_payload = message_part.get_payload(decode=True)
        return part_payload.decode("utf-8", "replace") if isinstance(part_payload, bytes) else ""


def _get_header_text(email_message: EmailMessage, header_name: str) -> str:
    try:
        return " ".join(str(email_message.get(header_name, "")).split())[:_MAX_HEADER_CHARS]
    except (ValueError, IndexError, AttributeError, TypeError):  # the parser fails on some
        return ""


def _serialize_message(email_message: EmailMessage) -> bytes:
    try:
        return email_message.as_bytes()
    except (RecursionError, MessageError, ValueError, LookupError, AttributeError) as error:
        raise Refusal("extraction_failed", "A message attached to it cannot be read") from error


def _make_nesting_refusal() -> Refusal:
    return Refusal("extraction_failed", "The message has too many parts inside each other")
