"""`readingroom doctor`: every problem in the data directory and around it, with the fix."""

import sys
from collections.abc import Iterator
from functools import partial

import click

from readingroom.bases import BASES
from readingroom.commands.backup import run_base_command
from readingroom.commands.checks import (
    CHECKS_BY_NAME,
    UPGRADE_REMEDY,
    find_database_obstacle,
)
from readingroom.console.options import add_common_options, print_result
from readingroom.core.errors import KnowledgeError
from readingroom.protocol.doctor import Complaint
from readingroom.protocol.spec import BaseSpec
from readingroom.server.settings import ServerSettings
from readingroom.storage.errors import SchemaTooNew


@click.command()
@click.option("--repair", is_flag=True, help="Mend what can be mended.")
@add_common_options
def doctor(repair: bool, settings: ServerSettings, as_json: bool) -> None:
    """Check the data, the model, tesseract, Redis, the database, the disk, permissions, versions
    and the port.

    Each line says what to do. Ends with 0 when all is well or was mended, else with 1; a note does
    not count.
    """
    database_obstacle = find_database_obstacle(settings)
    checked_base_specs = [
        base_spec
        for base_spec in BASES.values()
        if _has_data_to_check(base_spec, settings)
        and not (database_obstacle and base_spec.database_support == "moves")
    ]
    checks_by_name = dict(CHECKS_BY_NAME)
    if database_obstacle:
        checks_by_name["database"] = lambda _: iter([database_obstacle])
    checked_names = [*(base_spec.name for base_spec in checked_base_specs), *checks_by_name]
    findings = [
        finding
        for base_spec in checked_base_specs
        for finding in _check_base(base_spec, settings, repair)
    ]
    findings += [
        finding for run_check in checks_by_name.values() for finding in run_check(settings)
    ]
    problem_findings = [finding for finding in findings if not finding.is_note]
    noted_findings = [finding for finding in findings if finding.is_note]
    finding_lines = [_format_complaint(problem_finding) for problem_finding in problem_findings]
    finding_lines += [
        _format_complaint(noted_finding, "note: ") for noted_finding in noted_findings
    ]
    if not problem_findings:
        finding_lines.append(f"All is well: {', '.join(checked_names)}.")
    report_fields = {
        "checked": checked_names,
        "complaints": [
            problem_finding.model_dump(mode="json") for problem_finding in problem_findings
        ],
        "notes": [
            noted_finding.model_dump(mode="json", exclude={"repaired"})
            for noted_finding in noted_findings
        ],
    }
    print_result(as_json, report_fields, "\n".join(finding_lines))
    sys.exit(0 if all(problem_finding.repaired for problem_finding in problem_findings) else 1)


def _has_data_to_check(base_spec: BaseSpec, settings: ServerSettings) -> bool:
    """Return whether there is anything to check; a folder is not made for the check's sake."""
    if base_spec.doctor is None:
        return False
    if base_spec.database_support == "moves" and settings.database_url:
        return True
    return not base_spec.locks_folder or (settings.data / base_spec.name).is_dir()


def _check_base(
    base_spec: BaseSpec, settings: ServerSettings, is_repairing: bool
) -> Iterator[Complaint]:
    """Yield what is wrong with a base, or why it could not be checked."""
    assert base_spec.doctor is not None
    try:
        yield from base_spec.doctor(
            settings, is_repairing, partial(run_base_command, base_spec.name)
        )
    except SchemaTooNew as error:
        yield Complaint(subject=base_spec.name, problem=error.message, fix=UPGRADE_REMEDY)
    except KnowledgeError as error:
        remedy_text = "mend that first, or restore a backup; the server's log may say more"
        yield Complaint(subject=base_spec.name, problem=error.message, fix=remedy_text)


def _format_complaint(complaint: Complaint, line_prefix: str = "") -> str:
    advice_text = "mended" if complaint.repaired else complaint.fix
    return f"{line_prefix}{complaint.subject}: {complaint.problem}\n  → {advice_text}"
