"""Checks that every installed package has a licence an MIT project can stand on.

GPL, AGPL, LGPL, SSPL and unknown licences fail, but for `OPTIONAL` extras. Permissive licences
pass. Anything else, MPL-2.0 included, passes only with a reason in `REASONS`.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence

# SPDX names, and the names that older packages give themselves.
PERMISSIVE = {
    "0BSD",
    "Apache-2.0",
    "Apache Software License",
    "Apache License, Version 2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "3-Clause BSD License",
    "BSD License",
    "CC0-1.0",
    "ISC",
    "ISC License (ISCL)",
    "MIT",
    "MIT-0",
    "MIT-CMU",
    "MIT License",
    "PSF-2.0",
    "Python Software Foundation License",
    "Zlib",
}

# Extras that an operator may install, and that tests need: nothing that we ship contains them.
OPTIONAL = {
    "psycopg": "LGPL-3.0, unchanged: the driver of the extra `postgres`",
    "psycopg-binary": "LGPL-3.0, unchanged: the same, compiled",
}

FORBIDDEN = re.compile(r"GPL|GNU|General Public|SSPL|Server Side Public", re.IGNORECASE)

# Package -> why it may stay. MPL-2.0 asks only that changes to its own files stay open.
REASONS = {
    "certifi": "MPL-2.0, unchanged: certificate roots for the exporter of the extra `otel`",
    "fqdn": "MPL-2.0, unchanged: SBOM validation, at a developer's desk only",
    "hypothesis": "MPL-2.0, unchanged: runs the property tests, at a developer's desk only",
    "kubernetes-validate": "Apache-2.0 by its file LICENSE: checks manifests in tests",
    "orjson": "MPL-2.0 in part, unchanged: chromadb reads and writes JSON with it",
    "pathspec": "MPL-2.0, unchanged: used by hatchling and mypy, no part of what is shipped",
    "tqdm": "MPL-2.0 in part, unchanged: a dependency of chromadb",
    "pypdfium2": "BSD-3-Clause and Apache-2.0; the libraries inside PDFium are permissive too",
}


def main(argv: Sequence[str]) -> int:
    """Judge the packages of the Python named in argv, or of this one; 0 when all may be used."""
    licences = read_installed_licences(argv[0] if argv else sys.executable)
    shipped = {name: licence for name, licence in licences.items() if name not in OPTIONAL}
    objections = [*judge(shipped, REASONS), *list_unused(shipped, REASONS)]
    for objection in objections:
        print(objection, file=sys.stderr)
    print(f"{len(licences)} packages, {len(objections)} objections")
    return 1 if objections else 0


def read_installed_licences(python: str) -> dict[str, str]:
    """The licence of every installed package, by its normalised name."""
    command = [sys.executable, "-m", "piplicenses", "--python", python, "--with-system"]
    listing = subprocess.run([*command, "--format=json"], check=True, stdout=subprocess.PIPE)
    return {normal(package["Name"]): package["License"] for package in json.loads(listing.stdout)}


def normal(name: str) -> str:
    """A package's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def judge(licences: Mapping[str, str], reasons: Mapping[str, str]) -> list[str]:
    """One line for each package that may not be used."""
    verdicts = {name: verdict(text, reasons.get(name)) for name, text in licences.items()}
    return [f"{name}: {objection}" for name, objection in verdicts.items() if objection]


def verdict(licence: str, reason: str | None = None) -> str | None:
    """What speaks against a licence, or None; a reason helps only where the rules leave room."""
    if any(PERMISSIVE.issuperset(split_parts(choice)) for choice in list_choices(licence)):
        return None
    if licence.strip().upper() in {"", "UNKNOWN"}:
        return "its licence is unknown"
    if FORBIDDEN.search(licence):
        return f"{licence} is not allowed"
    return None if reason else f"{licence} needs a reason in scripts/licences.py"


def list_choices(licence: str) -> list[str]:
    """The licences to choose among; brackets may nest, so an expression with them stays whole."""
    return [licence] if "(" in licence else licence.split(" OR ")


def split_parts(choice: str) -> set[str]:
    """The licences that hold together: SPDX joins them with AND, trove classifiers with `;`."""
    return {part.strip() for part in re.split(r" AND |;", choice)}


def list_unused(licences: Mapping[str, str], reasons: Mapping[str, str]) -> list[str]:
    """One line for each reason that excuses nothing, so that the list stays true."""
    needed = {name for name, text in licences.items() if verdict(text)}
    idle = sorted(reasons.keys() - needed)
    return [f"{name}: the reason for it is no longer needed" for name in idle]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
