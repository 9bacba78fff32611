"""Imports at run time: by reference, and without the garbage collector."""

import gc
import subprocess
import sys

import pytest

from readingroom.core.imports import LazyModule, import_reference, pause_garbage_collection

LOADED_BY_OPENING = """
import sys, pathlib, tempfile
from readingroom.bases import BASES, open_bases
from readingroom.settings import Settings
open_bases(BASES, Settings(data=pathlib.Path(tempfile.mkdtemp())))
print(*{name.partition(".")[0] for name in sys.modules})
"""
NOT_FOR_OPENING = {
    "chromadb",
    "fastapi",
    "httpx2",
    "lxml",
    "mcp",
    "numpy",
    "onnx",
    "onnxruntime",
    "opentelemetry",
    "prometheus_client",
    "rapidfuzz",
    "safetensors",
    "starlette",
    "valkey",
    "yaml",
}


def test_a_lazy_module_is_imported_when_something_of_it_is_used() -> None:
    sys.modules.pop("colorsys", None)
    colorsys = LazyModule("colorsys")
    assert "colorsys" not in sys.modules
    assert colorsys.rgb_to_hls(0, 0, 0) == (0, 0, 0)
    assert colorsys.rgb_to_hls is sys.modules["colorsys"].rgb_to_hls


def test_a_lazy_module_has_no_names_of_its_own() -> None:
    with pytest.raises(AttributeError, match="nothing_of_it"):
        _ = LazyModule("colorsys").nothing_of_it


def test_a_reference_names_a_value_in_a_module() -> None:
    assert import_reference("readingroom.core.imports:import_reference") is import_reference


@pytest.mark.parametrize("reference", ["readingroom.nowhere:x", "readingroom.core.imports:nothing"])
def test_after_a_failed_import_garbage_is_collected_again(reference: str) -> None:
    with pytest.raises((ImportError, AttributeError)):
        import_reference(reference)

    assert gc.isenabled()


def test_a_pause_inside_a_pause_ends_with_the_outer_one() -> None:
    with pause_garbage_collection():
        with pause_garbage_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()

    assert gc.isenabled()


def test_imported_modules_are_never_walked_through_again() -> None:
    script = (
        "import gc; from readingroom.core.imports import import_reference;"
        "import_reference('readingroom.bases:BASES');"
        "print(gc.get_freeze_count() > 10_000, gc.isenabled())"
    )
    assert run_python(script) == "True True"


def test_opening_every_base_imports_no_server_and_no_database() -> None:
    assert not NOT_FOR_OPENING & set(run_python(LOADED_BY_OPENING).split())


def run_python(script: str) -> str:
    """Run a script in a new interpreter and return what it printed."""
    return subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout.strip()
