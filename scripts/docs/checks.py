"""Whether every page tells the truth, as far as a machine can see."""

import ast
import json
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scripts.docs import cli, errors, settings, tools
from scripts.docs.console import commands, worked
from scripts.docs.pages import HEADING, INLINE_CODE, PACKAGE, ROOT, Page, by_hand, pages

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_A_FILE = re.compile(r"[\w.-]+(/[\w.-]+)+\.(py|md|toml|yml|lock|txt|json)")


def check(root: Path) -> list[str]:
    """One line for each thing that is not as it should be."""
    checks = (stale, headings, links, commands, examples, worked, names, modules)
    return [problem for look in checks for problem in look(root)]


def generated() -> dict[str, str]:
    """The pages that come from the code, by their paths."""
    return {
        "docs/cli.md": cli.cli_page(),
        "docs/errors.md": errors.errors_page(),
        "docs/settings.md": settings.settings_page(),
        "docs/tools.md": tools.tools_page(),
    }


def stale(root: Path) -> Iterator[str]:
    """Generated pages that are not what the code says today."""
    for name, text in generated().items():
        path = root / name
        if not path.exists() or path.read_text("utf-8") != text:
            yield f"{name}: is stale; run make docs"


def headings(root: Path) -> Iterator[str]:
    """Tools, settings, codes and commands without a heading, and headings without one of them."""
    for name, wanted in subjects().items():
        path = root / name
        text = path.read_text("utf-8") if path.exists() else ""
        titles = HEADING.findall(text)
        there = {found[1] for title in titles if (found := INLINE_CODE.fullmatch(title))}
        twice = [title for title, count in Counter(titles).items() if count > 1]
        yield from (f"{name}: {title} is the heading of two" for title in twice)
        yield from (f"{name}: no heading for {missing}" for missing in sorted(wanted - there))
        yield from (f"{name}: there is no {extra}" for extra in sorted(there - wanted))


def subjects() -> dict[str, set[str]]:
    """What each generated page must have a heading for."""
    return {
        "docs/cli.md": {path for path, _ in cli.walk()},
        "docs/errors.md": errors.codes(),
        "docs/settings.md": settings.variables(),
        "docs/tools.md": {tool.name for base in tools.bases() for tool in base.tools},
    }


def links(root: Path) -> Iterator[str]:
    """Links to files and anchors that are not there."""
    known = {page.path.resolve(): page for page in pages(root)}
    for page in pages(root):
        # Code is blanked, not cut, so that a link keeps its place.
        text = INLINE_CODE.sub(lambda match: " " * len(match[0]), page.prose)
        for match in _LINK.finditer(text):
            if not re.match(r"[a-z]+:", match[1]) and not leads(page, match[1], root, known):
                line = text.count("\n", 0, match.start()) + 1
                yield f"{page.name}:{line}: {match[1]} leads nowhere"


def leads(page: Page, target: str, root: Path, known: Mapping[Path, Page]) -> bool:
    name, _, anchor = target.partition("#")
    path = (page.path.parent / name).resolve() if name else page.path.resolve()
    if not path.exists() or not path.is_relative_to(root.resolve()):
        return False
    return not anchor or (path in known and anchor in known[path].anchors)


def examples(root: Path) -> Iterator[str]:
    """Blocks that are not what they say they are."""
    parsers: dict[str, Callable[[str], Any]] = {
        "json": json.loads,
        "python": ast.parse,
        "toml": settings.settings_file,
    }
    for page in pages(root):
        for language, text, line in page.blocks(*parsers):
            try:
                parsers[language](textwrap.dedent(text))
            except (ValueError, SyntaxError) as error:
                yield f"{page.name}:{line}: not {language}: {error}"


def names(root: Path) -> Iterator[str]:
    """Settings and files that a page written by hand names and that are not there."""
    for page in by_hand(root):
        for found in INLINE_CODE.finditer(page.prose):
            line = page.prose.count("\n", 0, found.start()) + 1
            for name in re.findall(r"\bREADINGROOM_[A-Z_]+\b", found[1]):
                if name not in settings.variables():
                    yield f"{page.name}:{line}: there is no setting {name}"
            if _A_FILE.fullmatch(found[1]) and is_missing(found[1]):
                yield f"{page.name}:{line}: there is no file {found[1]}"


def is_missing(name: str) -> bool:
    """Whether a file of one of our folders, named from the top or the package, is not there."""
    folder = Path(name).parts[0]
    if folder == "build":  # what make makes there comes and goes
        return False
    places = [place for place in (ROOT, PACKAGE) if (place / folder).is_dir()]
    return bool(places) and not any((place / name).exists() for place in places)


def modules(root: Path) -> Iterator[str]:
    """Modules that the tree in ARCHITECTURE.md leaves out of a folder, and those it makes up."""
    page = Page(root / "ARCHITECTURE.md", "ARCHITECTURE.md")
    tree = next((text for _, text, _ in page.blocks("text")), "")
    told = told_of_folders(tree)
    there = {path for path in PACKAGE.rglob("*.py") if not path.stem.startswith("__")}
    for path in sorted(there):
        if path.stem not in told[path.parent.relative_to(ROOT).as_posix()]:
            yield f"{page.name}: the tree does not name {path.relative_to(PACKAGE)}"
    known = {path.name for path in there | {*ROOT.glob("tests/*.py"), *ROOT.glob("scripts/*.py")}}
    for name in sorted({*re.findall(r"\b\w+\.py\b", tree)} - known):
        yield f"{page.name}: the tree names {name}, which is not there"


def told_of_folders(tree: str) -> dict[str, set[str]]:
    """For each folder of the tree, what its own line says and what stands right below it."""
    told: dict[str, set[str]] = defaultdict(set)
    above: list[tuple[int, str]] = []
    for line in tree.splitlines():
        indent = len(line) - len(line.lstrip())
        above = [(depth, name) for depth, name in above if depth < indent]
        first, _, rest = line.strip().partition(" ")
        if first.endswith("/"):
            above.append((indent, first[:-1]))
        folder = "/".join(name for _, name in above)
        told[folder] |= {*re.findall(r"\w+", rest if first.endswith("/") else line)}
    return told
