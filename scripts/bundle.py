"""Packs the Claude Desktop bundle: the manifest at the top, and the project for `uv` to install."""

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_ALWAYS = (1980, 1, 1, 0, 0, 0)  # the same files make the same bundle


def list_contents() -> Iterator[tuple[str, Path]]:
    """Names in the bundle, and the files they come from."""
    yield "manifest.json", ROOT / "deploy" / "mcpb" / "manifest.json"
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        yield name, ROOT / name
    for path in sorted((ROOT / "src").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(ROOT).as_posix(), path


def pack(target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, path in list_contents():
            entry = zipfile.ZipInfo(name, _ALWAYS)
            bundle.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "dist" / "readingroom.mcpb"
    pack(target)
    print(target)
