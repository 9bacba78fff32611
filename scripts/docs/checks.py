"""Checks of every page, as far as a machine can see."""

import ast
import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scripts.docs import cli, errors, settings, tools, tree
from scripts.docs.console import find_refused_commands, find_unchecked_answers
from scripts.docs.pages import (
    HEADING,
    INLINE_CODE,
    PACKAGE,
    ROOT,
    Page,
    list_handwritten_pages,
    list_pages,
)

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FILE_PATH = re.compile(r"[\w.-]+(/[\w.-]+)+\.(py|md|toml|yml|lock|txt|json)")


def check(root: Path) -> list[str]:
    """Return one line for each problem."""
    checks = (
        find_stale_pages,
        find_heading_problems,
        find_broken_links,
        find_refused_commands,
        find_broken_examples,
        find_unchecked_answers,
        find_unknown_names,
    )
    return [problem for find_problems in checks for problem in find_problems(root)]


def generate(root: Path) -> dict[str, str]:
    """Return the text of every page that comes from the code, whole or in part, by its path."""
    architecture = (root / "ARCHITECTURE.md").read_text("utf-8")
    return {
        "ARCHITECTURE.md": tree.replace_tree(architecture),
        "docs/cli.md": cli.render_cli_page(),
        "docs/errors.md": errors.render_errors_page(),
        "docs/settings.md": settings.render_settings_page(),
        "docs/tools.md": tools.render_tools_page(),
    }


def find_stale_pages(root: Path) -> Iterator[str]:
    """Yield the generated pages that differ from what the code says today."""
    for name, text in generate(root).items():
        path = root / name
        if not path.exists() or path.read_text("utf-8") != text:
            yield f"{name}: is stale; run make docs"


def find_heading_problems(root: Path) -> Iterator[str]:
    """Yield tools, settings, codes and commands without a heading, and headings of none."""
    for name, expected in list_subjects().items():
        path = root / name
        text = path.read_text("utf-8") if path.exists() else ""
        titles = HEADING.findall(text)
        headings = {match[1] for title in titles if (match := INLINE_CODE.fullmatch(title))}
        repeated = [title for title, count in Counter(titles).items() if count > 1]
        yield from (f"{name}: {title} is a heading twice" for title in repeated)
        yield from (f"{name}: no heading for {missing}" for missing in sorted(expected - headings))
        yield from (f"{name}: there is no {extra}" for extra in sorted(headings - expected))


def list_subjects() -> dict[str, set[str]]:
    """Return what each generated page must have a heading for."""
    return {
        "docs/cli.md": {path for path, _ in cli.walk()},
        "docs/errors.md": errors.list_codes(),
        "docs/settings.md": settings.list_variables(),
        "docs/tools.md": {tool.name for base in tools.open_bases() for tool in base.tools},
    }


def find_broken_links(root: Path) -> Iterator[str]:
    """Yield links to files and anchors that do not exist."""
    pages_by_path = {page.path.resolve(): page for page in list_pages(root)}
    for page in list_pages(root):
        # Code is blanked, not cut, so that a link keeps its position.
        text = INLINE_CODE.sub(lambda match: " " * len(match[0]), page.prose)
        for match in _LINK.finditer(text):
            if not re.match(r"[a-z]+:", match[1]) and not link_resolves(
                page, match[1], root, pages_by_path
            ):
                line = text.count("\n", 0, match.start()) + 1
                yield f"{page.name}:{line}: {match[1]} does not exist"


def link_resolves(page: Page, target: str, root: Path, pages_by_path: Mapping[Path, Page]) -> bool:
    name, _, anchor = target.partition("#")
    path = (page.path.parent / name).resolve() if name else page.path.resolve()
    if not path.exists() or not path.is_relative_to(root.resolve()):
        return False
    return not anchor or (path in pages_by_path and anchor in pages_by_path[path].anchors)


def find_broken_examples(root: Path) -> Iterator[str]:
    """Yield blocks that do not parse in their own language."""
    parsers: dict[str, Callable[[str], Any]] = {
        "json": json.loads,
        "python": ast.parse,
        "toml": settings.check_settings_file,
    }
    for page in list_pages(root):
        for language, text, line in page.blocks(*parsers):
            try:
                parsers[language](textwrap.dedent(text))
            except (ValueError, SyntaxError) as error:
                yield f"{page.name}:{line}: not {language}: {error}"


def find_unknown_names(root: Path) -> Iterator[str]:
    """Yield settings and files that a page written by hand names and that do not exist."""
    for page in list_handwritten_pages(root):
        for match in INLINE_CODE.finditer(page.prose):
            line = page.prose.count("\n", 0, match.start()) + 1
            for name in re.findall(r"\bREADINGROOM_[A-Z_]+\b", match[1]):
                if name not in settings.list_variables():
                    yield f"{page.name}:{line}: there is no setting {name}"
            if _FILE_PATH.fullmatch(match[1]) and is_missing(match[1]):
                yield f"{page.name}:{line}: there is no file {match[1]}"


def is_missing(name: str) -> bool:
    """Tell whether a path from the repository or the package names no file there."""
    folder = Path(name).parts[0]
    if folder == "build":  # made by make, so it may not exist yet
        return False
    parents = [parent for parent in (ROOT, PACKAGE) if (parent / folder).is_dir()]
    return bool(parents) and not any((parent / name).exists() for parent in parents)
