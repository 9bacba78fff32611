"""The VEX statements beside the SBOM are about what is locked, and what they claim is true."""

import json
import re
import subprocess
import sys
from pathlib import Path

from readingroom import __version__
from tests.requirements import requirement

ROOT = Path(__file__).parents[2]
# https://github.com/openvex/spec: those that need no further field.
JUSTIFICATIONS = {
    "component_not_present",
    "vulnerable_code_not_present",
    "vulnerable_code_not_in_execute_path",
    "vulnerable_code_cannot_be_controlled_by_adversary",
    "inline_mitigations_already_exist",
}

OPEN_A_STORE = """
import sys
from pathlib import Path
import numpy as np
from readingroom.storage.chunks import Chunks, ChunkStore

store = ChunkStore(Path(sys.argv[1]))
chunks = Chunks(["a"], ["b"], [{}], np.ones((1, 384), "f4"))
store.open_collection("policy_docs").upsert_chunks(chunks)
sockets = {link.readlink().name for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}
inodes = [name[8:-1] for name in sockets if name.startswith("socket:[")]
tables = [Path(f"/proc/self/net/{kind}").read_text() for kind in ("tcp", "tcp6")]
rows = [line.split() for table in tables for line in table.splitlines()[1:]]
print([row[1] for row in rows if row[3] == "0A" and row[9] in inodes])
print([name for name in sys.modules if name.startswith(("chromadb.server", "chromadb.app"))])
"""


@requirement("room:supply:vex")
def test_every_statement_names_what_is_locked_and_why_it_does_no_harm() -> None:
    vex = json.loads((ROOT / "deploy" / "vex.json").read_text("utf-8"))
    assert vex["@context"].startswith("https://openvex.dev/ns/")
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    (chromadb,) = re.findall(r"^chromadb==(\S+)", lock, re.MULTILINE)
    product = {
        "@id": f"pkg:pypi/readingroom@{__version__}",
        "subcomponents": [{"@id": f"pkg:pypi/chromadb@{chromadb}"}],
    }
    for statement in vex["statements"]:
        assert re.fullmatch(r"CVE-\d{4}-\d{4,}", statement["vulnerability"]["name"])
        assert statement["products"] == [product]
        assert statement["status"] == "not_affected"
        assert statement["justification"] in JUSTIFICATIONS
        assert statement["impact_statement"].startswith("No server is started: ")


@requirement("room:supply:vex")
def test_an_open_store_neither_listens_nor_imports_chromas_server(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OPEN_A_STORE, str(tmp_path / "chroma")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.splitlines() == ["[]", "[]"], done.stderr
