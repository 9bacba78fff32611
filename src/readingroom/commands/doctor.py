"""`readingroom doctor`: every disagreement in the data directory, with the fix."""

import shutil
import sys

import click

from readingroom.bases.documents.commands import CheckDocuments
from readingroom.bases.policy.commands import CheckPolicies
from readingroom.commands.options import common, run, say
from readingroom.core.errors import ModelUnavailable
from readingroom.core.settings import Settings, load
from readingroom.protocol.checkup import Complaint
from readingroom.protocol.command import Command

_LEAST_FREE = 512 * 1024 * 1024


@click.command()
@click.option("--repair", is_flag=True, help="Mend what can be mended.")
@common
def doctor(repair: bool, data: str | None, as_json: bool) -> None:
    """Check the registry, chunks and indexes, the model, tesseract and the disk.

    Ends with 0 when all is well or was mended, else with 1.
    """
    settings = load({"data": data})
    found = [
        *_base(CheckPolicies(repair=repair), settings),
        *_base(CheckDocuments(repair=repair), settings),
        *_model(settings),
        *_surroundings(settings),
    ]
    lines = [f"{one.subject}: {one.problem}\n  → {_advice(one)}" for one in found]
    body = {"complaints": [one.model_dump(mode="json") for one in found]}
    say(as_json, body, "\n".join(lines) or "All is well.")
    sys.exit(0 if all(one.repaired for one in found) else 1)


def _base(command: Command, settings: Settings) -> list[Complaint]:
    if not (settings.data / command.base).is_dir():
        return []
    return [Complaint.model_validate(one) for one in run(command, settings)["complaints"]]


def _model(settings: Settings) -> list[Complaint]:
    from readingroom.engine.weights import find_weights

    try:
        find_weights(settings.data / "models", settings.embedding_model_dir)
    except ModelUnavailable as error:
        return [
            Complaint(
                subject="model",
                problem=error.message,
                fix="readingroom model install; until then searches go by words only",
            )
        ]
    return []


def _surroundings(settings: Settings) -> list[Complaint]:
    found = []
    if settings.enable_ocr and shutil.which("tesseract") is None:
        found.append(
            Complaint(
                subject="tesseract",
                problem="it is not installed, so scanned pages have no text",
                fix="install tesseract-ocr, or set ENABLE_OCR=false",
            )
        )
    folder = next(one for one in (settings.data, *settings.data.parents) if one.exists())
    free = shutil.disk_usage(folder).free
    if free < _LEAST_FREE:
        found.append(
            Complaint(
                subject="disk",
                problem=f"only {free // 2**20} MB are free at {folder}",
                fix="make room, or choose another directory with --data",
            )
        )
    return found


def _advice(complaint: Complaint) -> str:
    return "mended" if complaint.repaired else complaint.fix
