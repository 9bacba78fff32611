"""The sample corpus as files that the ordinary commands load: all of it written by us.

Every text says that it is a sample. Titles, slugs and days are those of real documents, so that
questions can be asked as they would be asked of them.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from readingroom.demo import pictures
from readingroom.demo.paper import pdf_of

_HERE = Path(__file__).parent
_FOOTER = "Sample text written for Reading Room"


def digest() -> str:
    """Changes with every word of the corpus: what was loaded from another one is loaded anew."""
    files = sorted(path for path in _HERE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    whole = hashlib.sha256()
    for path in files:
        whole.update(path.relative_to(_HERE).as_posix().encode() + path.read_bytes())
    return whole.hexdigest()


def policies() -> list[dict[str, Any]]:
    """The policies with their revisions, as `readingroom policy import` takes them."""
    listed: list[dict[str, Any]] = tomllib.loads((_HERE / "policies.toml").read_text("utf-8"))[
        "policy"
    ]
    return listed


def write_policy(policy: dict[str, Any], folder: Path) -> Path:
    """One policy's PDFs and the list that names them; returns the list."""
    revisions = list(_set(policy["revisions"], folder))
    listed = folder / f"{policy['source']}.json"
    listed.write_text(json.dumps({"policies": [{**policy, "revisions": revisions}]}), "utf-8")
    return listed


def write_records(folder: Path) -> Path:
    """The federal records in their native formats; what is a PDF there is set as one here."""
    made = folder / "records"
    made.mkdir()
    for file in (_HERE / "records").iterdir():
        if file.name == "README.md":
            continue
        if file.suffix == ".md":
            pdf = pdf_of(file.read_text("utf-8"), _FOOTER)
            (made / file.with_suffix(".pdf").name).write_bytes(pdf)
        else:
            (made / file.name).write_bytes(file.read_bytes())
    return made


def application() -> dict[str, Any]:
    """What is known of the sample application."""
    return tomllib.loads((_HERE / "application.toml").read_text("utf-8"))


def write_application(folder: Path) -> Path:
    """Its documents: texts, a scan, a drawing, a render and a TIFF."""
    made = folder / "application"
    made.mkdir()
    written = {file.stem: file.read_text("utf-8") for file in (_HERE / "application").iterdir()}
    scanned, notice = written.pop("Parish_Council_Letter_Scan"), written.pop("Site_Notice")
    for name, text in written.items():
        (made / f"{name}.pdf").write_bytes(pdf_of(text, _FOOTER))
    drawn = {
        "Parish_Council_Letter_Scan.pdf": pictures.pdf_pages([pictures.scan(scanned)]),
        "Site_Notice.tiff": pictures.tiff_pages([pictures.scan(notice)]),
        "Proposed_Site_Plan.pdf": pictures.pdf_pages([pictures.site_plan()]),
        "Street_Scene_Visualisation.png": pictures.png(pictures.street_scene()),
    }
    for name, content in drawn.items():
        (made / name).write_bytes(content)
    return made


def _set(revisions: list[dict[str, Any]], folder: Path) -> Iterator[dict[str, Any]]:
    for revision in revisions:
        text = (_HERE / "policies" / revision["file"]).read_text("utf-8")
        pdf = folder / Path(revision["file"]).with_suffix(".pdf").name
        pdf.write_bytes(pdf_of(text, _FOOTER))
        yield {**revision, "file": pdf.name}
