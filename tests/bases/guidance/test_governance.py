"""The promises around the guidance base: documents, owners, alerts and gates, really there."""

import re
import subprocess
from pathlib import Path

import pytest

from readingroom.bases import open_bases
from readingroom.settings import Settings, load_settings
from tests.requirements import requirement
from tests.support.kit import make_app, open_app_client

ROOT = Path(__file__).parents[3]
RULES = ROOT / "deploy" / "prometheus" / "guidance.rules.yml"


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def read_section(page: str, title: str) -> str:
    """The text under a heading, up to the next of its level, in one line."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    assert found, f"no section {title!r}"
    return " ".join(found[1].split())


@requirement("guidance:incident")
def test_the_playbook_says_roll_back_notify_and_look_back_within_14_days() -> None:
    playbook = read_section(read("SECURITY.md"), "When something goes wrong")
    for word in ("Roll back", "Notify", "post-mortem within 14 days", "service level"):
        assert word in playbook
    times = read_section(read("SECURITY.md"), "Times to remedy")
    assert "critical (9.0 and above) | 7 days" in times
    assert "high (7.0 to 8.9) | 14 days" in times


@requirement("guidance:migration")
def test_a_deprecation_lasts_30_days_and_has_migration_notes() -> None:
    deprecation = read_section(read("docs/governance.md"), "Deprecation")
    assert "at least 30 days" in deprecation
    assert "migration notes" in deprecation
    for removed in re.findall(
        r"^### (?:Deprecated|Removed)\n(.*?)(?=^#)", read("CHANGELOG.md"), re.M | re.S
    ):
        assert "igrat" in removed, "say what to call instead"


@requirement("guidance:owners")
@pytest.mark.parametrize(
    "path",
    [
        "src/readingroom/protocol/tool.py",
        "src/readingroom/core/errors.py",
        "src/readingroom/bases/guidance/models.py",
        "src/readingroom/bases/guidance/tools.py",
        "tests/contracts/guidance-1.1.0.json",
        "docs/governance.md",
    ],
)
def test_a_change_of_contract_needs_an_owner_of_the_protocol(path: str) -> None:
    assert (ROOT / path).exists()
    lines = [line.split() for line in read("CODEOWNERS").splitlines() if line.startswith("/")]
    owners = [names for pattern, *names in lines if _covers(pattern, path)]
    assert owners
    assert all("@protocol-owners" in names for names in owners)


def _covers(pattern: str, path: str) -> bool:
    if pattern.endswith("/"):
        return path.startswith(pattern[1:])
    return re.fullmatch(re.escape(pattern[1:]).replace(r"\*", "[^/]+"), path) is not None


@requirement("guidance:slo:alerts")
@pytest.mark.anyio
async def test_every_metric_that_an_alert_watches_is_one_the_server_shows(tmp_path: Path) -> None:
    settings = load_settings({"data": tmp_path}, {})
    (base,) = open_bases(["guidance"], settings)
    async with open_app_client(make_app(base, data=tmp_path)) as web:
        shown = (await web.get("/metrics")).text
    families = set(re.findall(r"^# TYPE (\S+)", shown, re.M))
    watched = set(re.findall(r"\breadingroom_\w+", RULES.read_text("utf-8")))
    assert len(watched) >= 5
    for name in watched:
        assert {name, re.sub(r"_(bucket|count|sum)$", "", name)} & families, name


@requirement("guidance:slo:alerts")
def test_each_objective_has_a_figure_and_an_alert() -> None:
    page, rules = read("docs/slo.md"), RULES.read_text("utf-8")
    for figure in ("99.5 %", "300 ms", "1,000 ms"):
        assert figure in page
        assert figure in rules
    assert rules.count("- alert: ") == rules.count("summary: ") == 6
    assert 'le="0.3"' in rules
    assert 'le="1.0"' in rules


@requirement("guidance:ci-gates", "guidance:supply")
def test_make_test_runs_every_gate() -> None:
    planned = subprocess.run(
        ["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for gate in ("ruff", "mypy", "lint-imports", "licences.py", "cyclonedx-py", "pytest"):
        assert gate in planned, gate
    assert "make test" in read(".ci/run")


@requirement("guidance:supply")
def test_every_package_is_pinned_with_its_hash() -> None:
    for lock in ("requirements.lock", "requirements-dev.lock"):
        blocks = re.split(r"\n(?=\S)", read(lock))
        packages = [block for block in blocks if not block.startswith("#")]
        assert packages
        assert all("==" in block and "--hash=sha256:" in block for block in packages)


@requirement("guidance:config")
def test_every_outgoing_endpoint_is_a_setting() -> None:
    """No module that asks GOV.UK holds an address that it could call."""
    package = ROOT / "src" / "readingroom"
    addresses = {
        (path.name, address)
        for folder in (package / "net", package / "bases" / "guidance")
        for path in folder.rglob("*.py")
        for address in re.findall(r"https?://[a-z0-9.-]+", path.read_text("utf-8"))
    }
    quoted = {
        ("settings.py", "https://www.gov.uk"),  # the setting itself
        ("values.py", "https://www.gov.uk"),  # what citations say, never called
        ("tools.py", "https://www.gov.uk"),  # an example in a description
        ("models.py", "https://www.nationalarchives.gov.uk"),  # the licence, named in answers
    }
    called = {found for found in addresses if found[1].startswith("https://")} - quoted
    assert {
        found for found in called if not found[1].endswith((".example", "example.org"))
    } == set()
    assert Settings().govuk_base_url == "https://www.gov.uk"


@requirement("guidance:config")
def test_no_secret_is_in_the_tree() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    looks_secret = re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY|AKIA[0-9A-Z]{16}|\brr_[A-Za-z0-9_-]{40,}|xox[bap]-\w{10,}"
    )
    found = [
        name
        for name in tracked
        if (ROOT / name).is_file()
        and looks_secret.search((ROOT / name).read_text("utf-8", "ignore"))
        and name != "tests/bases/guidance/test_governance.py"
    ]
    assert found == []
