"""Finds the files that a reader of documents needs: Python, packages, tesseract, C libraries."""

import os
import shutil
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

import readingroom

_READABLE_SYSTEM_PATHS = (
    *("/usr", "/lib", "/lib32", "/lib64", "/bin"),
    *("/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew"),
    *("/etc/ld.so.cache", "/dev/urandom"),
)


def find_program_paths(environment_variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths of the programs that read documents, as a process with this environment
    finds them.

    Not `sys.path`: its first entry may be the folder in which the server was started.
    """
    # A path named `/` would open every file.
    return tuple(
        sorted(
            {
                program_path
                for program_path in _iterate_program_paths(environment_variables)
                if program_path != "/"
            }
        )
    )


def _iterate_program_paths(environment_variables: Mapping[str, str]) -> Iterator[str]:
    yield from _READABLE_SYSTEM_PATHS
    yield from (sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parent))
    yield from (
        sysconfig.get_path(subfolder_name) for subfolder_name in ("stdlib", "purelib", "platlib")
    )
    yield str(Path(readingroom.__file__).parent)
    if site.ENABLE_USER_SITE:
        yield site.getusersitepackages()
    for variable_name in ("PYTHONPATH", "LD_LIBRARY_PATH", "TESSDATA_PREFIX"):
        folders_in_variable = environment_variables.get(variable_name, "").split(os.pathsep)
        yield from (
            folder_in_variable
            for folder_in_variable in folders_in_variable
            if Path(folder_in_variable).is_absolute()
        )
    tesseract_path = shutil.which("tesseract", path=environment_variables.get("PATH"))
    if tesseract_path is not None:
        resolved_tesseract_path = Path(tesseract_path).resolve()
        yield str(resolved_tesseract_path)
        # Not the folder above: for `~/bin/tesseract` that is the home directory.
        for subfolder_name in ("lib", "share/tessdata", "share/tesseract-ocr"):
            yield str(resolved_tesseract_path.parents[1] / subfolder_name)
