"""The Node programs that the tests run, as `npm ci` installs them beside this file."""

from pathlib import Path

NODE_MODULES = Path(__file__).parent / "node_modules"

CONFORMANCE_2025 = "conformance-2025/dist/index.js"
CONFORMANCE_2026 = "conformance-2026/dist/index.js"
INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"


def make_command(program: str, *arguments: str) -> list[str]:
    """The command line of a program, under the Node that is installed beside it."""
    path = NODE_MODULES / program
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: run `npm ci` in {NODE_MODULES.parent}")
    return [str(find_node()), str(path), *arguments]


def make_own_command(program: str) -> list[str]:
    """The command line of a program of ours that lies beside this file."""
    return [str(find_node()), str(Path(__file__).parent / program)]


def find_node() -> Path:
    """Node 22. Not by way of .bin, which npm 9 leaves without a link to it."""
    for path in NODE_MODULES.glob("node-*/bin/node"):
        return path
    raise FileNotFoundError(f"No Node for this machine in {NODE_MODULES}")
