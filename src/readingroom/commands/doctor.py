"""`readingroom doctor`: every disagreement in the data directory, with the fix."""

import sys

import click

from readingroom.bases.documents.commands import CheckDocuments
from readingroom.bases.policy.commands import CheckPolicies
from readingroom.commands.checks import CHECKS, Remark
from readingroom.commands.console import common, run, say
from readingroom.core.errors import KnowledgeError
from readingroom.core.settings import Settings, load
from readingroom.protocol.doctor import Complaint

# The bases whose stores can disagree, and the command that compares them.
_COMPARED: dict[str, type[CheckPolicies] | type[CheckDocuments]] = {
    "documents": CheckDocuments,
    "policy": CheckPolicies,
}


@click.command()
@click.option("--repair", is_flag=True, help="Mend what can be mended.")
@common
def doctor(repair: bool, data: str | None, as_json: bool) -> None:
    """Check the data, the model, tesseract, Redis, the disk, permissions, versions and the port.

    Each line says what to do. Ends with 0 when all is well or was mended, else with 1; a note does
    not count.
    """
    settings = load({"data": data})
    remarks = [one for check in CHECKS.values() for one in check(settings)]
    complaints = [one for name in _COMPARED for one in _compared(name, settings, repair)]
    complaints += [_complaint(one) for one in remarks if one.serious]
    notes = [_complaint(one) for one in remarks if not one.serious]
    checked = [*(name for name in _COMPARED if (settings.data / name).is_dir()), *CHECKS]
    lines = [_line(one) for one in complaints] + [_line(one, "note: ") for one in notes]
    if not complaints:
        lines.append(f"All is well: {', '.join(checked)}.")
    body = {
        "checked": checked,
        "complaints": [one.model_dump(mode="json") for one in complaints],
        "notes": [one.model_dump(mode="json", exclude={"repaired"}) for one in notes],
    }
    say(as_json, body, "\n".join(lines))
    sys.exit(0 if all(one.repaired for one in complaints) else 1)


def _compared(base: str, settings: Settings, repair: bool) -> list[Complaint]:
    """What the stores of a base disagree about, or why they could not be compared."""
    if not (settings.data / base).is_dir():
        return []
    command = _COMPARED[base](repair=repair)
    try:
        answer = run(command, settings)
    except KnowledgeError as error:
        fix = "mend that first, or restore a backup; the server's log may say more"
        return [Complaint(subject=base, problem=error.message, fix=fix)]
    return [Complaint.model_validate(one) for one in answer["complaints"]]


def _complaint(remark: Remark) -> Complaint:
    return Complaint(subject=remark.subject, problem=remark.problem, fix=remark.fix)


def _line(complaint: Complaint, kind: str = "") -> str:
    advice = "mended" if complaint.repaired else complaint.fix
    return f"{kind}{complaint.subject}: {complaint.problem}\n  → {advice}"
