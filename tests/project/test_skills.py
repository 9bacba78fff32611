"""The agent skills: valid, one for each prompt, and of tools that exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from readingroom.bases import BASES, open_bases
from readingroom.federation.prompts import PROMPTS
from readingroom.federation.room import make_federated_base
from readingroom.settings import load_settings
from tests.requirements import requirement

SKILLS = Path(__file__).parents[2] / "skills"
NAMES = [prompt.name.replace("_", "-") for prompt in PROMPTS]

pytestmark = requirement("room:skills")


def read_skill(name: str) -> tuple[dict[str, str], str]:
    _, frontmatter, instructions = (SKILLS / name / "SKILL.md").read_text("utf-8").split("---\n", 2)
    return yaml.safe_load(frontmatter), instructions


def test_there_is_one_for_each_prompt() -> None:
    assert sorted(path.name for path in SKILLS.iterdir()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_its_frontmatter_is_that_of_the_standard(name: str) -> None:
    frontmatter, instructions = read_skill(name)
    assert frontmatter["name"] == name
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", name)
    assert "Use when" in frontmatter["description"]
    assert len(frontmatter["description"]) <= 1024
    assert len(instructions.splitlines()) <= 500


@pytest.mark.parametrize("name", NAMES)
def test_it_names_tools_that_exist_and_all_of_its_prompt(name: str, tmp_path: Path) -> None:
    settings = load_settings({"data": tmp_path}, {})
    bases = open_bases(BASES, settings)
    tools = {
        tool.name for base in (*bases, make_federated_base(bases, settings)) for tool in base.tools
    }
    _, instructions = read_skill(name)
    quoted = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", instructions))
    assert quoted - tools <= {"next_cursor", "more_url", "members"}
    (prompt,) = [prompt for prompt in PROMPTS if prompt.name.replace("_", "-") == name]
    rendered = prompt.render({argument.name: "x" for argument in prompt.arguments})
    assert set(re.findall(r"\w+", rendered)) & tools <= quoted


def test_the_linter_of_skills_finds_nothing() -> None:
    command = [sys.executable, "-m", "skillsaw", "lint", str(SKILLS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    assert f"Skills:    {len(NAMES)}" in done.stdout
    assert "Warnings: 0" in done.stdout
