"""A data directory of release 0.1.0 with policies and an application, and what 0.1.0 answers on it.

`python -m tests.support.first_release SOURCE` makes both again, with the code below SOURCE, the
`src` of a checkout of 0.1.0. The models are left out: they are the same for every release.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.model import link_model
from tests.support.policy.base import make_policy_pdf

FIXTURES = Path(__file__).parents[1] / "fixtures"
DATA_ARCHIVE = FIXTURES / "planning-0.1.0.zip"
ANSWERS = FIXTURES / "planning-0.1.0.json"
REFERENCE = "25/01178/REM"

QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("policy", "list"),
    ("policy", "show", "NPPF"),
    ("policy", "effective", "2024-03-15"),
    ("policy", "section", "NPPF", "Para 1"),
    ("policy", "section", "NPPF", "Chapter 1", "--revision", "rev_NPPF_2023_09"),
    ("policy", "search", "cycle parking spaces", "--on", "2024-03-15", "--mode", "semantic"),
    ("policy", "search", "cycle parking spaces", "--mode", "lexical"),
    ("documents", "list", "--application", REFERENCE),
    ("documents", "application", REFERENCE),
    ("documents", "search", "spaces beside the square", "--application", REFERENCE),
)
"""Commands that only read, by what 0.1.0 called them."""


def make_fixture(source: Path) -> None:
    """Write the archive and the answers with the code of 0.1.0."""
    with tempfile.TemporaryDirectory() as folder:
        data = link_model(Path(folder) / "data")
        environment = {**os.environ, "PYTHONPATH": str(source)}
        _fill(data, environment)
        answers = [_run(data, *question, env=environment) for question in QUESTIONS]
        (data / "models").unlink()
        _write_archive(data)
    ANSWERS.write_text(json.dumps(answers, indent=1) + "\n", "utf-8")


def unpack_fixture(data: Path) -> Path:
    """Return a data directory that holds what 0.1.0 wrote, and the model."""
    link_model(data)
    with zipfile.ZipFile(DATA_ARCHIVE) as archive:
        archive.extractall(data)
    return data


def ask(data: Path, *question: str) -> Any:
    """Return the answer of this release."""
    return _run(data, *question, env=os.environ)


def _fill(data: Path, environment: Mapping[str, str]) -> None:
    folder = data.parent
    revisions = (("September 2023", "2023-09-05", "one"), ("December 2024", "2024-12-12", "two"))
    _run(data, "policy", "add", "NPPF", "--title", "National Policy",
         "--category", "national_policy", env=environment)  # fmt: skip
    for label, first_day, number in revisions:
        paragraphs = [
            f"Development provides {number} covered cycle parking spaces for each home.",
            "Homes are built where people can walk to a shop, a school and a bus.",
            "Land that floods is left to the water, and what is built nearby is built for it.",
        ]
        file = folder / f"{first_day}.pdf"
        file.write_bytes(make_policy_pdf([("Transport", paragraphs), ("Homes", paragraphs[1:])]))
        _run(data, "policy", "revise", "NPPF", str(file), "--label", label, "--from", first_day,
             env=environment)  # fmt: skip
    statement = folder / "Transport Statement.pdf"
    statement.write_bytes(
        make_policy_pdf(
            [("Cycling", ["The scheme provides 200 covered cycle spaces beside the square."])]
        )
    )
    _run(data, "documents", "ingest", "--application", REFERENCE, str(statement), env=environment)
    _run(data, "documents", "application", REFERENCE, "--address", "1 The Square",
         "--validated", "2024-05-01", env=environment)  # fmt: skip


def _run(data: Path, *args: str, env: Mapping[str, str]) -> Any:
    command = [sys.executable, "-m", "readingroom", *args, "--data", str(data), "--json"]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"{args}: {ended.stderr}")
    return json.loads(ended.stdout)


def _write_archive(data: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(data.rglob("*")):
            if path.is_file() and path.suffix not in (".lock", ".sock"):
                archive.write(path, path.relative_to(data))
    DATA_ARCHIVE.write_bytes(buffer.getvalue())


if __name__ == "__main__":
    make_fixture(Path(sys.argv[1]))
