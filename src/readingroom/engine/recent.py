"""Chunks that answered lately: the same passages answer again and again, and asking the store for
ten of them takes as long as finding them.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from readingroom.core.filters import Metadata
from readingroom.storage.chunks import Chunks

_KEPT = 4_096  # about 8 MB

_Kept = tuple[str, Metadata]


class RecentChunks:
    """Texts and metadata by id. A write forgets everything, so what is told is never out of date:
    a reading that a write overtook is not kept.
    """

    def __init__(self, read: Callable[[Sequence[str]], Chunks]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._writes = 0
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def get(self, ids: Sequence[str]) -> Chunks:
        """Chunks by id, without vectors; ids that are not there are left out."""
        with self._lock:
            writes = self._writes
            found = {id: self._kept[id] for id in ids if id in self._kept}
            for id in found:
                self._kept.move_to_end(id)
        missing = [id for id in ids if id not in found]
        if missing:
            read = self._read(missing)
            rows = zip(read.texts, read.metadatas, strict=True)
            new = dict(zip(read.ids, rows, strict=True))
            self._keep(new, writes)
            found |= new
        known = [id for id in ids if id in found]
        return Chunks(known, [found[id][0] for id in known], [found[id][1] for id in known])

    def forget(self) -> None:
        """To be called when a write has ended, however it ended."""
        with self._lock:
            self._writes += 1
            self._kept.clear()

    def _keep(self, new: dict[str, _Kept], writes: int) -> None:
        with self._lock:
            if writes == self._writes:
                self._kept |= new
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
