"""The code keeps to the limits that make it readable: sizes, names, imports, comments."""

import pytest

from scripts.structure import FORBIDDEN_NAME, HONEST_TWINS, VAGUE_NAMES, Structure

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


def test_long_files_are_few(structure: Structure) -> None:
    assert len(structure.long_files) <= MAX_LONG_FILES, structure.long_files


def test_comments_are_there_and_not_everywhere(structure: Structure) -> None:
    assert 2 <= structure.comment_share <= 4
