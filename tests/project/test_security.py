"""Every test that SECURITY.md names exists, so that its table cannot promise what nobody checks."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = [path for path in (ROOT / "tests").rglob("*.py") if "node_modules" not in path.parts]


def test_every_test_that_the_table_of_attacks_names_exists() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    names = set(re.findall(r"`(test_\w+)`", text))
    written = "\n".join(path.read_text("utf-8") for path in TESTS)
    assert len(names) > 60
    assert [name for name in sorted(names) if f"def {name}(" not in written] == []
    files = set(re.findall(r"`(tests/[\w/]+\.py)`", text))
    assert [file for file in sorted(files) if not (ROOT / file).is_file()] == []


def test_every_finding_of_the_first_report_has_a_row() -> None:
    rows = re.findall(r"^\| ([HMLI]\d+) ", (ROOT / "SECURITY.md").read_text("utf-8"), re.MULTILINE)
    counts = {"H": 4, "M": 9, "L": 13, "I": 6}
    assert rows == [
        f"{kind}{number}" for kind, last in counts.items() for number in range(1, last + 1)
    ]
