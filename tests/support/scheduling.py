"""How pytest-xdist shares the test files out: a file stays on one worker, the longest come first.

With the longest files first the workers end at the same time. Files of the console share a worker,
because they share a browser and a server with the sample. The first worker that needs the official
federal records loads them; files that do stand apart, so that the other need not wait.
"""

from typing import Any

from xdist.scheduler import LoadScopeScheduling

_BROWSER = "tests/browser/"
LONGEST_FIRST = (
    "tests/bases/federal/test_links.py",
    f"{_BROWSER}test_pages.py",
    "tests/federation/test_desk.py",
    "tests/bases/policy/test_cli.py",
    "tests/commands/test_backup.py",
    "tests/bases/federal/test_loading.py",
    "tests/demo/test_sample.py",
    "tests/server/test_fuzz.py",
    "tests/server/test_auth.py",
    "tests/server/test_http.py",
    "tests/bases/federal/test_records.py",
    "tests/bases/documents/test_served.py",
    "tests/bases/documents/test_corpus.py",
    "tests/bases/federal/test_texts.py",
    "tests/bases/policy/test_state_machine.py",
    "tests/commands/test_dispatch.py",
    "tests/commands/test_cli.py",
    "tests/bases/policy/test_service.py",
    "tests/server/test_oauth.py",
    "tests/server/test_inspector.py",
    "tests/bases/federal/test_names.py",
    "tests/bases/guidance/test_shared_state.py",
    "tests/engine/test_embedding.py",
    "tests/storage/test_chunks.py",
    "tests/ingest/test_ocr.py",
    "tests/bases/policy/test_fuzz.py",
    "tests/bases/federal/test_fuzz.py",
    "tests/bases/documents/test_fuzz.py",
)
_RANK = {path: rank for rank, path in enumerate(LONGEST_FIRST)}


def rank_of(nodeid: str) -> int:
    """Position of a test's file among the longest; those that are not listed come after them."""
    path = _file_of(nodeid)
    return _RANK.get(f"{_BROWSER}test_pages.py" if path.startswith(_BROWSER) else path, len(_RANK))


class LongestFilesFirst(LoadScopeScheduling):
    """Scheduling by scope: a file, or all of the console."""

    def __init__(self, config: Any, log: Any = None) -> None:
        config.option.loadscopereorder = (
            False  # by number of tests, of which the long files have few
        )
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        path = _file_of(nodeid)
        return _BROWSER if path.startswith(_BROWSER) else path


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]
