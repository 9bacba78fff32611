"""The sample corpus, written to files that the ordinary commands load.

All of it was written for Reading Room, and every text says that it is a sample. Titles, slugs and
dates are those of real documents, so that it can answer the same questions.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from readingroom.demo import pictures
from readingroom.demo.congress import write_congress
from readingroom.demo.paper import make_pdf

_DEMO_FOLDER = Path(__file__).parent
_PAGE_FOOTER_TEXT = "Sample text written for Reading Room"


def compute_corpus_digest() -> str:
    """Return a hash of the whole corpus, so that a changed corpus is loaded anew."""
    corpus_paths = sorted(
        file_path
        for file_path in _DEMO_FOLDER.rglob("*")
        if file_path.is_file() and file_path.suffix != ".pyc"
    )
    sha256 = hashlib.sha256()
    for file_path in corpus_paths:
        sha256.update(
            file_path.relative_to(_DEMO_FOLDER).as_posix().encode() + file_path.read_bytes()
        )
    return sha256.hexdigest()


def load_sample_policies() -> list[dict[str, Any]]:
    """Return the policies with their revisions, in the format of `readingroom policy import`."""
    toml_document = tomllib.loads((_DEMO_FOLDER / "policies.toml").read_text("utf-8"))
    policies: list[dict[str, Any]] = toml_document["policy"]
    return policies


def write_policy(policy_fields: dict[str, Any], target_folder: Path) -> Path:
    """Write the PDFs of one policy and the list that names them; return the path of the list."""
    revisions = list(_write_revisions(policy_fields["revisions"], target_folder))
    manifest_path = target_folder / f"{policy_fields['source']}.json"
    manifest_path.write_text(
        json.dumps({"policies": [{**policy_fields, "revisions": revisions}]}), "utf-8"
    )
    return manifest_path


def write_records(target_folder: Path) -> Path:
    """Write the federal records in their native formats, PDFs included; return their folder."""
    records_folder = target_folder / "records"
    records_folder.mkdir()
    for record_path in (_DEMO_FOLDER / "records").iterdir():
        if record_path.name == "README.md":
            continue
        if record_path.suffix == ".md":
            pdf_bytes = make_pdf(record_path.read_text("utf-8"), _PAGE_FOOTER_TEXT)
            (records_folder / record_path.with_suffix(".pdf").name).write_bytes(pdf_bytes)
        else:
            (records_folder / record_path.name).write_bytes(record_path.read_bytes())
    return records_folder


def write_more_records(target_folder: Path) -> Path:
    """Write the same, and a Congress made up for lists and charts; return their folder."""
    records_folder = write_records(target_folder)
    write_congress(records_folder)
    return records_folder


def load_sample_application() -> dict[str, Any]:
    """Return the metadata of the sample application."""
    return tomllib.loads((_DEMO_FOLDER / "application.toml").read_text("utf-8"))


def load_shop_application() -> dict[str, Any]:
    """Return the metadata of the second sample application."""
    return tomllib.loads((_DEMO_FOLDER / "shop_application.toml").read_text("utf-8"))


def write_shop_application(target_folder: Path) -> Path:
    """Write the documents of the second application; return their folder."""
    application_folder = target_folder / "shop_application"
    application_folder.mkdir()
    for document_path in (_DEMO_FOLDER / "shop_application").iterdir():
        pdf_bytes = make_pdf(document_path.read_text("utf-8"), _PAGE_FOOTER_TEXT)
        (application_folder / document_path.with_suffix(".pdf").name).write_bytes(pdf_bytes)
    return application_folder


def write_application(target_folder: Path) -> Path:
    """Write its documents (texts, a scan, a drawing, a rendering, a TIFF); return their folder."""
    application_folder = target_folder / "application"
    application_folder.mkdir()
    text_by_document_name = {
        text_path.stem: text_path.read_text("utf-8")
        for text_path in (_DEMO_FOLDER / "application").iterdir()
    }
    letter_text, notice_text = (
        text_by_document_name.pop("Parish_Council_Letter_Scan"),
        text_by_document_name.pop("Site_Notice"),
    )
    for document_name, document_text in text_by_document_name.items():
        (application_folder / f"{document_name}.pdf").write_bytes(
            make_pdf(document_text, _PAGE_FOOTER_TEXT)
        )
    image_bytes_by_name = {
        "Parish_Council_Letter_Scan.pdf": pictures.encode_pdf([pictures.make_scan(letter_text)]),
        "Site_Notice.tiff": pictures.encode_tiff([pictures.make_scan(notice_text)]),
        "Proposed_Site_Plan.pdf": pictures.encode_pdf([pictures.make_site_plan()]),
        "Street_Scene_Visualisation.png": pictures.encode_png(pictures.make_street_scene()),
    }
    for document_name, image_bytes in image_bytes_by_name.items():
        (application_folder / document_name).write_bytes(image_bytes)
    return application_folder


def _write_revisions(
    revisions: list[dict[str, Any]], target_folder: Path
) -> Iterator[dict[str, Any]]:
    for revision_number, revision in enumerate(revisions):
        revision_fields = dict(revision)
        is_cut_off = revision_fields.pop("is_cut_off", False)
        text_path = Path(revision_fields["file"])
        pdf_bytes = make_pdf(
            (_DEMO_FOLDER / "policies" / text_path).read_text("utf-8"), _PAGE_FOOTER_TEXT
        )
        pdf_path = target_folder / f"{revision_number}-{text_path.stem}.pdf"
        pdf_path.write_bytes(pdf_bytes[: len(pdf_bytes) // 3] if is_cut_off else pdf_bytes)
        yield {**revision_fields, "file": pdf_path.name}
