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

_HERE = Path(__file__).parent
_FOOTER = "Sample text written for Reading Room"


def digest() -> str:
    """Return a hash of the whole corpus, so that a changed corpus is loaded anew."""
    files = sorted(path for path in _HERE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    sha256 = hashlib.sha256()
    for path in files:
        sha256.update(path.relative_to(_HERE).as_posix().encode() + path.read_bytes())
    return sha256.hexdigest()


def policies() -> list[dict[str, Any]]:
    """Return the policies with their revisions, in the format of `readingroom policy import`."""
    document = tomllib.loads((_HERE / "policies.toml").read_text("utf-8"))
    policies: list[dict[str, Any]] = document["policy"]
    return policies


def write_policy(policy: dict[str, Any], folder: Path) -> Path:
    """Write the PDFs of one policy and the list that names them; return the path of the list."""
    revisions = list(_write_revisions(policy["revisions"], folder))
    path = folder / f"{policy['source']}.json"
    path.write_text(json.dumps({"policies": [{**policy, "revisions": revisions}]}), "utf-8")
    return path


def write_records(folder: Path) -> Path:
    """Write the federal records in their native formats, PDFs included; return their folder."""
    target = folder / "records"
    target.mkdir()
    for file in (_HERE / "records").iterdir():
        if file.name == "README.md":
            continue
        if file.suffix == ".md":
            pdf = make_pdf(file.read_text("utf-8"), _FOOTER)
            (target / file.with_suffix(".pdf").name).write_bytes(pdf)
        else:
            (target / file.name).write_bytes(file.read_bytes())
    return target


def write_more_records(folder: Path) -> Path:
    """Write the same, and a Congress made up for lists and charts; return their folder."""
    target = write_records(folder)
    write_congress(target)
    return target


def application() -> dict[str, Any]:
    """Return the metadata of the sample application."""
    return tomllib.loads((_HERE / "application.toml").read_text("utf-8"))


def shop_application() -> dict[str, Any]:
    """Return the metadata of the second sample application."""
    return tomllib.loads((_HERE / "shop_application.toml").read_text("utf-8"))


def write_shop_application(folder: Path) -> Path:
    """Write the documents of the second application; return their folder."""
    target = folder / "shop_application"
    target.mkdir()
    for file in (_HERE / "shop_application").iterdir():
        pdf = make_pdf(file.read_text("utf-8"), _FOOTER)
        (target / file.with_suffix(".pdf").name).write_bytes(pdf)
    return target


def write_application(folder: Path) -> Path:
    """Write its documents (texts, a scan, a drawing, a rendering, a TIFF); return their folder."""
    target = folder / "application"
    target.mkdir()
    texts = {file.stem: file.read_text("utf-8") for file in (_HERE / "application").iterdir()}
    letter, notice = texts.pop("Parish_Council_Letter_Scan"), texts.pop("Site_Notice")
    for name, text in texts.items():
        (target / f"{name}.pdf").write_bytes(make_pdf(text, _FOOTER))
    images = {
        "Parish_Council_Letter_Scan.pdf": pictures.save_pdf([pictures.draw_scan(letter)]),
        "Site_Notice.tiff": pictures.save_tiff([pictures.draw_scan(notice)]),
        "Proposed_Site_Plan.pdf": pictures.save_pdf([pictures.draw_site_plan()]),
        "Street_Scene_Visualisation.png": pictures.save_png(pictures.draw_street_scene()),
    }
    for name, content in images.items():
        (target / name).write_bytes(content)
    return target


def _write_revisions(revisions: list[dict[str, Any]], folder: Path) -> Iterator[dict[str, Any]]:
    for number, revision in enumerate(revisions):
        fields = dict(revision)
        is_cut_off = fields.pop("is_cut_off", False)
        text_file = Path(fields["file"])
        content = make_pdf((_HERE / "policies" / text_file).read_text("utf-8"), _FOOTER)
        pdf = folder / f"{number}-{text_file.stem}.pdf"
        pdf.write_bytes(content[: len(content) // 3] if is_cut_off else content)
        yield {**fields, "file": pdf.name}
