"""The Markdown files of the project: their blocks, headings and anchors."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from scripts.docs.markdown import MARK, slug

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "readingroom"
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
INLINE_CODE = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Page:
    """One Markdown file of the project."""

    path: Path
    name: str

    @cached_property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @cached_property
    def prose(self) -> str:
        """The text with its code blocks blanked, so that line numbers still hold."""
        return _FENCE.sub(lambda match: "\n" * match[0].count("\n"), self.text)

    def blocks(self, *languages: str) -> Iterator[tuple[str, str, int]]:
        """Yield language, text and first line of the blocks in one of these languages."""
        for match in _FENCE.finditer(self.text):
            if match[1] in languages:
                yield match[1], match[2], self.line(match.start()) + 1

    def line(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1

    @cached_property
    def anchors(self) -> set[str]:
        """Every anchor a link may name; a repeated heading gets a number, as on GitHub."""
        slugs = [slug(heading) for heading in HEADING.findall(self.prose)]
        seen: Counter[str] = Counter()
        for number, name in enumerate(slugs):
            slugs[number] = f"{name}-{seen[name]}" if seen[name] else name
            seen[name] += 1
        return set(slugs)


def list_pages(root: Path) -> list[Page]:
    folders = ("*.md", "docs/**/*.md", "benchmarks/*.md")
    paths = sorted(path for folder in folders for path in root.glob(folder))
    return [Page(path, path.relative_to(root).as_posix()) for path in paths]


def list_handwritten_pages(root: Path) -> list[Page]:
    """Return the pages that are not generated as a whole."""
    return [page for page in list_pages(root) if MARK not in page.text]
