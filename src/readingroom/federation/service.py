"""One search and one fetch over every base, with no word of MCP or HTTP in it."""

import time
from collections.abc import Mapping, Sequence
from functools import partial

import anyio.to_thread
from pydantic import ValidationError

from readingroom.bases.federal.schema import sources as federal
from readingroom.bases.federal.schema.ids import VALID_PREFIXES
from readingroom.core.errors import RecordNotFound, UnknownSource, UnrecognizedId
from readingroom.core.ids import ROOM_PREFIXES, base_of
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.errors import ModelUnavailable
from readingroom.engine.hybrid import fuse
from readingroom.federation.errors import ValidationDateUnknown
from readingroom.federation.fan_out import Switchboard
from readingroom.federation.models import (
    AssessAgainstPolicy,
    Assessment,
    DeskAnswer,
    DeskHit,
    DeskRecord,
    Fetch,
    Note,
    Search,
)
from readingroom.federation.readers import DocumentsReader, Reader
from readingroom.protocol.tool import Call
from readingroom.storage.errors import FolderInUse

# The same for every page of a search, so that pages agree.
_DEPTH = 20  # results that each base is asked for
_JUDGED = 10  # of these, how many are compared with the question by meaning
_READ = 240  # characters of a passage by which its meaning is judged
_MEANING = 3.0  # how much more that counts than the first place in a base that knows little of it

Rankings = Sequence[Sequence[DeskHit]]


class DeskService:
    """What takes more than one base to answer."""

    def __init__(
        self,
        readers: Sequence[Reader],
        embedder: Embedder,
        switchboard: Switchboard,
        absent: Mapping[str, str] = {},
    ) -> None:
        self._readers = {reader.base: reader for reader in readers}
        self._embedder = embedder
        self._switchboard = switchboard
        self._absent = [
            Note(base=base, code=FolderInUse.code, message=why) for base, why in absent.items()
        ]
        self.running = switchboard.running

    async def search(self, asked: Search, call: Call) -> DeskAnswer:
        """The best passages of every base that was meant, in one order."""
        started = time.perf_counter()
        bases, narrowed = self._scope(asked.source)
        question = asked.model_copy(update={"source": narrowed or None})
        heard = await self._switchboard.ask(
            {base: partial(self._readers[base].search, question, _DEPTH, call) for base in bases}
        )
        ranked = await anyio.to_thread.run_sync(
            self._ranked, asked.query, list(heard.answers.values())
        )
        end = asked.offset + asked.limit
        return DeskAnswer(
            results=ranked[asked.offset : end],
            total=len(ranked),
            took_ms=round((time.perf_counter() - started) * 1000, 1),
            searched=list(heard.answers),
            notes=[*heard.notes, *self._absent],
            next_offset=end if end < len(ranked) else None,
        )

    async def fetch(self, asked: Fetch, call: Call) -> DeskRecord:
        """Any record of any base."""
        base = base_of(asked.id)
        reader = self._readers.get(base)
        if reader is None:
            raise RecordNotFound(f"{asked.id} is of the base {base}, which is not served here")
        try:
            return await reader.fetch(asked.id.strip(), asked.offset, call)
        except (UnrecognizedId, ValidationError) as error:
            raise UnrecognizedId(
                f"{asked.id[:100]!r} is no id of this room",
                valid_prefixes=[*ROOM_PREFIXES, *VALID_PREFIXES],
            ) from error

    async def assess(self, asked: AssessAgainstPolicy, call: Call) -> Assessment:
        """What an application says on a topic, beside the policy of its day."""
        day, whence = await self._day(asked)
        search = Search(
            query=asked.topic, date=day, application_ref=asked.application_ref, limit=asked.limit
        )
        heard = await self._switchboard.ask(
            {
                base: partial(self._readers[base].search, search, asked.limit, call)
                for base in ("documents", "policy")
            }
        )
        return Assessment(
            application_ref=asked.application_ref,
            topic=asked.topic,
            date=day,
            date_from=whence,
            application=heard.answers.get("documents", []),
            policy=heard.answers.get("policy", []),
            notes=heard.notes,
        )

    async def _day(self, asked: AssessAgainstPolicy) -> tuple[str, str]:
        """The day whose policy is shown, and where it comes from."""
        if asked.date is not None:
            return asked.date, "asked"
        documents = self._readers["documents"]
        assert isinstance(documents, DocumentsReader)
        day = await documents.validated(asked.application_ref)
        if day is None:
            raise ValidationDateUnknown(
                f"The day {asked.application_ref} was validated is not known: give `date`, or "
                "set it",
                use_tool="set_application",
            )
        return day, "validation_date"

    def _scope(self, source: Sequence[str] | str | None) -> tuple[list[str], list[str]]:
        """The bases that are meant, and the sources of the federal base that narrow it."""
        written = source.split(",") if isinstance(source, str) else source or ()
        names = [name.strip().lower() for name in written if name.strip()]
        if not names:
            return list(self._readers), []
        bases = [name for name in names if name in self._readers]
        narrowed = [self._federal_source(name) for name in names if name not in self._readers]
        if "federal" in bases:  # the whole base was named: no source narrows it
            return bases, []
        return [*bases, "federal"] if narrowed else bases, narrowed

    def _federal_source(self, name: str) -> str:
        known = federal.source_names(federal.SOURCES) if "federal" in self._readers else []
        try:
            if known:
                return federal.find_source(name).name
        except UnknownSource:
            pass
        raise UnknownSource(
            f"There is no base or source {name[:100]!r}", valid_sources=[*self._readers, *known]
        )

    def _ranked(self, query: str, lists: Rankings) -> list[DeskHit]:
        """One order: the place a base gave, and how near the passage is to the question.

        Scores of different bases cannot be compared; the meaning of their passages can.
        """
        # Two passages of one page have one id: the better one stands for it.
        hits = {hit.id: hit for ranking in lists for hit in reversed(ranking)}
        rankings = [[hit.id for hit in ranking] for ranking in lists]
        weights = [1.0] * len(rankings)
        if len(lists) > 1:
            judged = {hit.id: hits[hit.id] for ranking in lists for hit in ranking[:_JUDGED]}
            by_meaning = self._by_meaning(query, list(judged.values()))
            rankings, weights = [*rankings, by_meaning], [*weights, _MEANING]
        return [
            hits[id].model_copy(update={"score": round(score, 6)})
            for id, score in fuse(rankings, weights)
        ]

    def _by_meaning(self, query: str, hits: list[DeskHit]) -> list[str]:
        if not hits:
            return []
        try:
            asked, *passages = self._embedder.embed_each(
                [query, *(f"{hit.title}. {hit.snippet}"[:_READ] for hit in hits)]
            )
        except ModelUnavailable:
            return []  # each base's own order is what there is
        nearness = {hit.id: float(one @ asked) for hit, one in zip(hits, passages, strict=True)}
        return sorted(nearness, key=lambda id: (-nearness[id], id))
