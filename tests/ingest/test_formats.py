"""Files as portals hold them: each format is read from a file that another program made."""

import csv
import datetime
import io
import subprocess
import sys
import types
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import docx
import odfdo
import openpyxl
import pytest
from docx.oxml import OxmlElement
from PIL import Image
from reportlab.pdfgen.canvas import Canvas

from readingroom.core.progress import no_progress
from readingroom.ingest.document import Document, ReadOptions, Refusal, SkippedFile
from readingroom.ingest.pipeline import Pipeline
from readingroom.ingest.read.contained import list_contained_files
from readingroom.ingest.read.formats.detect import check_file_name
from readingroom.ingest.read.reader import read_file
from readingroom.ingest.read.sandbox import ConfinedReader
from tests.requirements import requirement
from tests.support.papers import make_paper, open_private_copy

FIXTURES = Path(__file__).parents[1] / "fixtures" / "formats"


def read(content: bytes, file_name: str) -> Document:
    """The document in these bytes, read in this process: for what needs no sandbox."""
    document = read_file(content, file_name, ReadOptions(), lambda *progress: None)
    assert isinstance(document, Document)
    return document


def read_page_texts(content: bytes, file_name: str) -> list[str]:
    return [page.text for page in read(content, file_name).pages]


def refuse(content: bytes, file_name: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        read(content, file_name)
    return caught.value


# --- files made by other programs ---


def make_word_document() -> bytes:
    document = docx.Document()
    document.add_heading("Objection to 25/01178/REM", 1)
    document.add_paragraph("The ridge is 9½ m above the lane.")
    document.add_paragraph("It overlooks three gardens.", style="List Number")
    document.add_paragraph("It blocks the light.", style="List Number")
    table = document.add_table(2, 2)
    for row, cells in enumerate((("Plot", "Height"), ("7", "9.5 m"))):
        for column, cell in enumerate(cells):
            table.cell(row, column).text = cell
    document.add_page_break()
    document.add_paragraph("Yours faithfully")
    return save(document.save)


def save(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def open_text() -> bytes:
    document = odfdo.Document("text")
    document.body.clear()
    document.body.append(odfdo.Header(1, "Planning statement"))
    document.body.append(odfdo.Paragraph("The site is 2.4 ha, beside the canal."))
    document.body.append(odfdo.List(["covered cycle stores", "a bin store"]))
    table = odfdo.Table("Uses", width=2, height=2)
    for name, value in (("A1", "Use"), ("B1", "Area"), ("A2", "Homes"), ("B2", "2.1 ha")):
        table.set_value(name, value)
    document.body.append(table)
    return save(document.save)


def make_workbook() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Tree schedule"
    sheet.append(["Tree", "Girth", "Surveyed", "Retained"])
    sheet.append(["Oak", 2.5, datetime.date(2025, 3, 4), True])
    measured = datetime.datetime(2025, 3, 4, 9, 30)  # noqa: DTZ001 Excel knows no zones
    sheet.append(["Ash", 0.1 + 0.2, measured, False])
    book.create_sheet("Notes")["A1"] = "Measured at 1.5 m"
    return save(book.save)


def make_csv_table() -> bytes:
    file = io.StringIO()
    writer = csv.writer(file, dialect="excel", delimiter=";")
    writer.writerows([["Ref", "Comment"], ["1", "Too tall; too near"], ["2", "No objection"]])
    return file.getvalue().encode("cp1252")


def make_message(*attached: tuple[str, bytes]) -> bytes:
    mail = EmailMessage()
    mail["From"] = "Jane Roe <jane@example.org>"
    mail["To"] = "planning@example.gov.uk"
    mail["Subject"] = "Objection to 25/01178/REM – héllo"
    mail["Date"] = "Mon, 03 Mar 2025 10:00:00 +0000"
    mail.set_content("I object to the height.\n\nJane")
    mail.add_alternative("<p>I object to the <b>height</b>.</p>", subtype="html")
    for file_name, content in attached:
        mail.add_attachment(content, "application", "octet-stream", filename=file_name)
    return mail.as_bytes()


def make_zip(folder: Path, **contents: bytes) -> bytes:
    """An archive that the system's `zip` made of these files."""
    for name, content in contents.items():
        (folder / f"{name}.txt").write_bytes(content)
    subprocess.run(["zip", "-q", "-r", "papers.zip", "."], cwd=folder, check=True)
    return (folder / "papers.zip").read_bytes()


@requirement("ingest:formats")
def test_a_word_document_is_read_with_its_numbers_tables_and_pages() -> None:
    first, second = read_page_texts(make_word_document(), "letter.docx")

    assert first.split("\n\n") == [
        "Objection to 25/01178/REM",
        "The ridge is 9½ m above the lane.",
        "1. It overlooks three gardens.",
        "2. It blocks the light.",
        "Plot | Height\n7 | 9.5 m",
    ]
    assert second == "Yours faithfully"


@requirement("ingest:formats")
def test_deleted_and_hidden_words_of_a_document_are_left_out() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("Kept. ")
    paragraph.add_run("Hidden.").font.hidden = True
    deletion = OxmlElement("w:del")
    deletion.append(paragraph.add_run("Deleted.")._r)
    paragraph._p.append(deletion)

    assert read(save(document.save), "a.docx").text == "Kept."


@requirement("ingest:formats")
def test_an_opendocument_text_is_read() -> None:
    assert read_page_texts(open_text(), "statement.odt") == [
        "Planning statement\n\nThe site is 2.4 ha, beside the canal.\n\ncovered cycle stores\n\n"
        "a bin store\n\nUse | Area\nHomes | 2.1 ha"
    ]


@requirement("ingest:formats")
def test_the_sheets_of_a_workbook_are_pages_and_its_dates_are_days() -> None:
    document = read(make_workbook(), "trees.xlsx")

    assert [page.label for page in document.pages] == ["Tree schedule", "Notes"]
    assert document.pages[0].text.splitlines()[2:] == [
        "Tree | Girth | Surveyed | Retained",
        "Oak | 2.5 | 2025-03-04 | TRUE",
        "Ash | 0.3 | 2025-03-04 09:30 | FALSE",
    ]


@requirement("ingest:formats")
def test_a_table_of_commas_or_semicolons_is_read() -> None:
    assert read_page_texts(make_csv_table(), "comments.csv") == [
        "Ref | Comment\n1 | Too tall; too near\n2 | No objection"
    ]


@requirement("ingest:formats")
def test_a_text_is_read_in_its_encoding_and_form_feeds_end_its_pages() -> None:
    text = "The café objects.\n\nAt length.\fSecond page"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        assert read_page_texts(text.encode(encoding), "a.txt") == [
            "The café objects.\n\nAt length.",
            "Second page",
        ]


@requirement("ingest:formats")
def test_a_page_of_the_web_is_read_as_it_is_seen() -> None:
    page = (
        "<html><head><title>x</title><style>p{}</style><script>steal()</script></head><body>"
        "<h1>Comments</h1><p>It is<br>too tall &amp; near.</p><p style='display: none'>unseen</p>"
        "<p>Not<span hidden>unseen</span> <!-- unseen -->far.</p>"
        "<ol><li>light<li>noise</ol><table><tr><th>Plot<td>7</table></body></html>"
    )

    assert read_page_texts(page.encode(), "a.html") == [
        "Comments\n\nIt is\ntoo tall & near.\n\nNot far.\n\n1. light\n\n2. noise\nPlot | 7"
    ]


@requirement("ingest:formats")
def test_headings_of_markdown_are_headings() -> None:
    text = b"# 1. Introduction\n\n1. Plans **must** be [sound](http://a.example).\n\n## Annex\n"
    document = read_file(text, "a.md", ReadOptions(find_sections=True), lambda *progress: None)

    assert isinstance(document, Document)
    assert document.text == "1. Introduction\n\n1. Plans must be sound.\n\nAnnex"
    assert "Chapter 1" in [section.ref for section in document.sections]


@requirement("ingest:formats")
def test_rich_text_is_read() -> None:
    assert read_page_texts((FIXTURES / "objection.rtf").read_bytes(), "objection.rtf") == [
        "Objection\n\nThe café is too tall: 9½ m — we object.\n\nSecond paragraph.\n\nPlot | Height"
    ]


@requirement("ingest:formats")
def test_rich_text_is_read_without_its_binary_data() -> None:
    text = rb"{\rtf1\ansi Dear \u8212? Sir{\pict\bin4 {\}}}\page Bye {\v unseen}\'a35.\par}"

    assert read_page_texts(text, "a.rtf") == ["Dear — Sir", "Bye £5."]


@requirement("ingest:formats")
def test_a_document_of_word_97_is_read() -> None:
    content = (FIXTURES / "word97.doc").read_bytes()

    assert read(content, "old.doc").text == "Test OLE file, saved as Word 97-2003 Document."
    assert refuse((FIXTURES / "encrypted.doc").read_bytes(), "a.doc").message.startswith(
        "The file is encrypted"
    )


@requirement("ingest:formats")
def test_an_e_mail_is_read_with_its_headers_once() -> None:
    assert read_page_texts(make_message(("plan.pdf", b"%PDF-")), "a.eml") == [
        "From: Jane Roe <jane@example.org>\nTo: planning@example.gov.uk\n"
        "Date: Mon, 03 Mar 2025 10:00:00 +0000\nSubject: Objection to 25/01178/REM – héllo\n"
        "Attachments: plan.pdf\n\nI object to the height.\n\nJane"
    ]


@requirement("ingest:formats")
def test_a_message_of_outlook_is_read_with_what_is_attached_to_it() -> None:
    content = (FIXTURES / "objection.msg").read_bytes()

    assert read_page_texts(content, "objection.msg") == [
        "From: Jane Roe <jane@example.org>\nTo: planning@example.gov.uk\n"
        "Date: Mon, 03 Mar 2025 10:00:00 +0000\nSubject: Objection to 25/01178/REM\n"
        "Attachments: photograph notes.txt, Earlier letter.eml\n\nDear planning team,\n\n"
        "I object to the height of 9½ m.\n\nJane Roe"
    ]
    notes, letter = list_contained_files(content, "objection.msg")
    assert (notes.name, notes.content) == ("photograph notes.txt", b"The hedge was cut in May.")
    assert read(letter.content, letter.name).text.endswith("We wrote in January already.")


@requirement("ingest:formats")
def test_the_files_of_an_archive_are_listed_and_unpacked(tmp_path: Path) -> None:
    content = make_zip(tmp_path, notes=b"A note.", letter=b"A letter.")

    assert "letter.txt | 9 bytes" in read(content, "papers.zip").text
    unpacked = {file.name: file.content for file in list_contained_files(content, "papers.zip")}
    assert unpacked == {"notes.txt": b"A note.", "letter.txt": b"A letter."}


def make_filled_form() -> bytes:
    """A form of questions with their answers, and notes beside it."""
    file = io.BytesIO()
    canvas = Canvas(file)
    form = canvas.acroForm
    canvas.drawString(72, 700, "Number of dwellings")
    answer = "47 dwellings of which 14 affordable"
    form.textfield(name="dwellings", value=answer, x=250, y=695, width=200, height=16)
    canvas.drawString(72, 670, "Agricultural tie    Yes          No")
    form.checkbox(name="yes", x=190, y=667, size=14, checked=True)
    form.checkbox(name="no", x=260, y=667, size=14, checked=False)
    canvas.drawString(72, 640, "Tenure")
    form.choice(
        name="tenure", value="Freehold", options=["Freehold", "Leasehold"], x=250, y=635, height=16
    )
    canvas.freeTextAnnotation("Added: 9.5 m", "0 g", Rect=[72, 600, 200, 615])
    canvas.textAnnotation("See the revised drawing", Rect=[72, 560, 100, 580])
    canvas.save()
    return file.getvalue()


@requirement("ingest:formats")
def test_answers_in_a_form_stand_beside_their_questions_and_notes_are_read() -> None:
    lines = [line for line in read(make_filled_form(), "form.pdf").text.splitlines() if line]

    assert lines == [
        "Number of dwellings 47 dwellings of which 14 affordable",
        "Agricultural tie Yes [x] No",
        "Tenure Freehold",
        "Added: 9.5 m",
        "[Note: See the revised drawing]",
    ]


@requirement("ingest:formats")
def test_a_picture_of_a_phone_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    heic = b"\x00\x00\x00\x18ftypheic" + bytes(100)
    monkeypatch.setitem(sys.modules, "pi_heif", None)

    refusal = refuse(heic, "photo.heic")
    assert (refusal.code, "readingroom[heic]" in refusal.message) == ("unsupported_file_type", True)

    opener = types.ModuleType("pi_heif")
    opener.register_heif_opener = (
        lambda: Image.register_open(  # type: ignore[attr-defined]
            "HEIC-TEST", lambda file, name: _FakeHeic(file, name), lambda head: head[4:8] == b"ftyp"
        )
    )
    monkeypatch.setitem(sys.modules, "pi_heif", opener)
    outcome = read_file(heic, "photo.heic", ReadOptions(), lambda *progress: None)
    assert outcome == SkippedFile(1.0, 1)


def _FakeHeic(file: object, name: object) -> Image.Image:
    return Image.new("RGB", (400, 300), "white")


@requirement("ingest:formats")
def test_the_bytes_decide_where_a_name_says_something_else() -> None:
    assert read(make_word_document(), "letter.doc").pages[1].text == "Yours faithfully"
    assert read(b"{\\rtf1 Dear Sir}", "letter.doc").text == "Dear Sir"
    assert (
        read(make_paper("A letter that is a PDF."), "letter.txt").text == "A letter that is a PDF."
    )
    assert read(b"BMW dealers object.", "letter.txt").text == "BMW dealers object."


# --- hostile files ---


def make_docx(document_xml: bytes, *entries: tuple[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", document_xml)
        for name, content in entries:
            archive.writestr(name, content)
    return file.getvalue()


@requirement("ingest:formats:hostile")
def test_entities_are_refused_wherever_there_is_xml() -> None:
    outside = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>'
    laughs = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><x>&b;</x>'
    for xml in (outside, laughs):
        refusal = refuse(make_docx(xml), "a.docx")
        assert "declares a document type" in refusal.message
        odt = make_docx(b"<x/>", ("content.xml", xml))
        assert "declares a document type" in refuse(odt, "a.odt").message
        xlsx = make_docx(b"<x/>", ("xl/workbook.xml", xml))
        assert "declares a document type" in refuse(xlsx, "a.xlsx").message


@requirement("ingest:formats:hostile")
def test_a_page_of_the_web_opens_no_other_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    page = f"""<!DOCTYPE html SYSTEM "{secret}" [<!ENTITY e SYSTEM "file://{secret}">]>
        <p>&e;</p><iframe src="{secret}"></iframe><object data="{secret}"></object><p>seen</p>"""

    assert "the secret" not in read(page.encode(), "a.html").text


@requirement("ingest:formats:hostile")
def test_a_bomb_is_refused_before_it_is_large() -> None:
    zeros = bytes(200 * 2**20)
    bomb = make_docx(b"<x>" + zeros + b"</x>")
    assert len(bomb) < 2**19
    assert "unpacks to more than" in refuse(bomb, "a.docx").message

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for index in range(3):
            archive.writestr(f"{index}.txt", zeros)
    with pytest.raises(Refusal, match="unpacks to more than 512 MB"):
        list_contained_files(file.getvalue(), "a.zip")


@requirement("ingest:formats:hostile")
def test_elements_and_groups_inside_each_other_without_end_are_refused() -> None:
    deep = b"<x>" * 100_000 + b"</x>" * 100_000
    assert "too deeply" in refuse(make_docx(deep), "a.docx").message
    assert "too deeply" in refuse(b"{\\rtf1" + b"{" * 10_000, "a.rtf").message
    body = b"From: a\nContent-Type: multipart/mixed; boundary=0\n\n"
    parts = b"".join(
        b"--%d\nContent-Type: multipart/mixed; boundary=%d\n\n" % (depth, depth + 1)
        for depth in range(5_000)
    )
    assert refuse(body + parts, "a.eml").code == "extraction_failed"


@requirement("ingest:formats:hostile")
def test_paths_in_an_archive_lead_nowhere() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for path in ("../../etc/cron.d/x", "/etc/passwd", "C:\\Windows\\y.txt", "a/../b/z.txt"):
            archive.writestr(path, path)
        link = zipfile.ZipInfo("link.txt")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        for name in ("__MACOSX/._a.txt", ".DS_Store", "Thumbs.db"):
            archive.writestr(name, b"noise")

    names = [unpacked.name for unpacked in list_contained_files(file.getvalue(), "a.zip")]
    assert names == ["x", "passwd", "y.txt", "z.txt"]


@requirement("ingest:formats:hostile")
def test_an_archive_of_thousands_and_an_encrypted_one_are_refused(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for index in range(501):
            archive.writestr(f"{index}.txt", b"")
    with pytest.raises(Refusal, match="There are 501 files in it"):
        list_contained_files(file.getvalue(), "a.zip")

    (tmp_path / "a.txt").write_text("secret")
    subprocess.run(["zip", "-q", "-P", "word", "a.zip", "a.txt"], cwd=tmp_path, check=True)
    with pytest.raises(Refusal, match="encrypted"):
        list_contained_files((tmp_path / "a.zip").read_bytes(), "a.zip")
    assert "encrypted" in refuse(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "a.docx").message


@requirement("ingest:formats:hostile")
def test_macros_are_refused_by_name_and_never_looked_at_inside() -> None:
    with pytest.raises(Refusal, match="with macros are not read"):
        check_file_name("letter.docm")
    xml = b"<document><body><p><r><t>Dear Sir</t></r></p></body></document>"
    assert read(make_docx(xml, ("word/vbaProject.bin", b"\x00evil")), "a.docx").text == "Dear Sir"


@requirement("ingest:formats:cut")
@pytest.mark.parametrize(
    ("file_name", "make"),
    [
        ("a.docx", make_word_document),
        ("a.odt", open_text),
        ("a.xlsx", make_workbook),
        ("a.pdf", lambda: make_paper(*["A long report, page after page. " * 40] * 9)),
        ("a.png", lambda: save(lambda file: _draw_noise().save(file, "PNG"))),
        ("a.jpg", lambda: save(lambda file: _draw_noise().save(file, "JPEG"))),
    ],
)
def test_a_download_that_was_cut_off_is_called_that(
    file_name: str, make: Callable[[], bytes]
) -> None:
    content = make()
    refusal = refuse(content[: len(content) * 2 // 3], file_name)

    assert (refusal.code, "cut off" in refusal.message) == ("extraction_failed", True)


def _draw_noise() -> Image.Image:
    return Image.effect_noise((300, 300), 60)


@requirement("ingest:formats")
@pytest.mark.anyio
async def test_the_sandbox_reads_and_unpacks_them_too(tmp_path: Path) -> None:
    pipeline = Pipeline(ConfinedReader())
    for content, file_name in (
        (make_word_document(), "a.docx"),
        ((FIXTURES / "objection.msg").read_bytes(), "a.msg"),
        (open_text(), "a.odt"),
    ):
        with open_private_copy(content, file_name) as private_copy:
            document = await pipeline.read_document(private_copy, no_progress)
        assert isinstance(document, Document)
        assert document.text == read(content, file_name).text
    with open_private_copy(make_message(("notes.txt", b"A note.")), "a.eml") as private_copy:
        async with pipeline.unpack_files(private_copy, 2**20) as (unpacked_file,):
            with unpacked_file.open_private_copy() as attached:
                assert (attached.file_name, attached.read_first_bytes(99)) == (
                    "notes.txt",
                    b"A note.",
                )
    assert not unpacked_file.path.exists()
