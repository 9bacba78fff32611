"""The code keeps to the limits that make it readable: sizes, names, imports, comments."""

from pathlib import Path

import pytest

from scripts.structure import FORBIDDEN_NAME, GETTERS_OF_NONE, HONEST_TWINS, VAGUE_NAMES, Structure

MAX_MODULES = 15
MAX_INNER_IMPORTS = 20
MAX_VAGUE_NAMES = 60
MAX_LONG_FILES = 2


@pytest.fixture(scope="module")
def structure() -> Structure:
    return Structure()


def test_no_package_is_too_large(structure: Structure) -> None:
    size, name = structure.largest_package

    assert size <= MAX_MODULES, name


def test_imports_stand_at_the_top(structure: Structure) -> None:
    assert len(structure.inner_imports) <= MAX_INNER_IMPORTS, structure.inner_imports


def test_names_say_what_things_are(structure: Structure) -> None:
    vague = {name: structure.bindings[name] for name in VAGUE_NAMES}

    assert structure.bindings[FORBIDDEN_NAME] == 0
    assert sum(vague.values()) <= MAX_VAGUE_NAMES, vague


def test_public_class_names_are_unique(structure: Structure) -> None:
    assert structure.repeated_classes.keys() - HONEST_TWINS == set()


def test_what_is_called_get_never_gives_none(structure: Structure) -> None:
    assert sorted(structure.getters_of_none) == sorted(GETTERS_OF_NONE)


def test_what_is_called_describe_gives_words(structure: Structure) -> None:
    assert structure.wordless_descriptions == []


def test_a_name_with_the_wrong_verb_is_found(tmp_path: Path) -> None:
    (tmp_path / "store.py").write_text(
        "def get_page(key: str) -> 'Page | None': ...\n"
        "async def _get_pages() -> list[Page | None]: ...\n"
        "def find_page(key: str) -> Page | None: ...\n"
        "def describe_page() -> Iterator[str]: ...\n"
        "class Store:\n"
        "    def _describe(self) -> dict[str, str]: ...\n"
    )
    structure = Structure(tmp_path)

    assert structure.getters_of_none == ["store.py:get_page"]
    assert structure.wordless_descriptions == ["store.py:_describe"]


def test_long_files_are_few(structure: Structure) -> None:
    assert len(structure.long_files) <= MAX_LONG_FILES, structure.long_files


def test_comments_are_there_and_not_everywhere(structure: Structure) -> None:
    assert 2 <= structure.comment_share <= 4
