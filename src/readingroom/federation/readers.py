"""How the desk reads each base: a search and a fetch in one shape, whatever the base's own is."""

from typing import Any, ClassVar, Protocol
from urllib.parse import quote

from readingroom.bases.documents.models import (
    DocumentHit,
    GetDocumentText,
    SearchApplicationDocs,
)
from readingroom.bases.documents.service import DocumentsService
from readingroom.bases.federal.models import LONGEST_TEXT
from readingroom.bases.federal.models import Search as FederalSearch
from readingroom.bases.federal.schema.records import Citation
from readingroom.bases.federal.service import FederalService
from readingroom.bases.guidance.models import (
    ATTRIBUTION,
    DISCLAIMER,
    GetContentByPath,
    PageText,
    SearchGuidance,
)
from readingroom.bases.guidance.service import GuidanceService
from readingroom.bases.guidance.tools import call_context
from readingroom.bases.policy.models import GetPolicySection, PolicyHit, SearchPolicy
from readingroom.bases.policy.service import PolicyService
from readingroom.bases.text.models import KbAvailable
from readingroom.bases.text.service import TextService
from readingroom.core.errors import RecordNotFound
from readingroom.core.ids import TEXT_ID, document_ref, policy_section
from readingroom.engine.chunking import split
from readingroom.engine.words import words_of
from readingroom.federation.models import DeskHit, DeskRecord, InForce, Search
from readingroom.protocol.tool import Call

_SPARE = 10  # asked for beyond what is wanted, in place of headings that are passed over
_LONGEST_HEADING = 200


class Reader(Protocol):
    """One base at the desk."""

    base: ClassVar[str]

    async def search(self, asked: Search, most: int, call: Call) -> list[DeskHit]:
        """Its best passages, in its own order. `source` names sources of the federal base alone."""

    async def fetch(self, id: str, offset: int, call: Call) -> DeskRecord:
        """The record that an id of its own names."""


class Links:
    """Where a person reads what has no public address of its own: a page of this server."""

    def __init__(self, address: str) -> None:
        self._address = address

    def to(self, id: str) -> str:
        return f"{self._address}/read?id={quote(id, safe=':@/')}" if self._address else id


class PolicyReader:
    base: ClassVar[str] = "policy"

    def __init__(self, service: PolicyService, links: Links) -> None:
        self._service = service
        self._links = links

    async def search(self, asked: Search, most: int, call: Call) -> list[DeskHit]:
        day = asked.date or self._service.today.isoformat()
        found = await self._service.search(
            SearchPolicy(
                query=asked.query, effective_date=day, n_results=most + _SPARE, mode="hybrid"
            )
        )
        return [self._hit(hit) for hit in found.results if not is_heading(hit.text)][:most]

    async def fetch(self, id: str, offset: int, call: Call) -> DeskRecord:
        named = policy_section(id)
        if named is None:
            return self._passage(
                await self._service.get_passage(id.removeprefix("policy:")), offset
            )
        source, revision, ref = named
        section = await self._service.get_section(
            GetPolicySection(source=source, section_ref=ref, revision_id=revision)
        )
        about = section.model_dump(mode="json", exclude={"text", "status", "id"})
        return self._record(section.id, section.citation, section.text, about, offset)

    def _passage(self, hit: PolicyHit, offset: int) -> DeskRecord:
        about = hit.model_dump(mode="json", exclude={"text", "relevance_score", "id"})
        return self._record(hit.id, hit.citation, hit.text, about, offset)

    def _record(
        self, id: str, citation: str, text: str, about: dict[str, Any], offset: int
    ) -> DeskRecord:
        return record(
            self.base,
            id,
            title=citation,
            text=text,
            url=self._links.to(id),
            citation=citation,
            source=about["source"],
            about=about,
            offset=offset,
        )

    def _hit(self, hit: PolicyHit) -> DeskHit:
        url = self._links.to(hit.id)
        return DeskHit(
            id=hit.id,
            title=f"{hit.source} ({hit.version_label}), {hit.section_ref or 'front matter'}",
            url=url,
            source=hit.source,
            snippet=hit.text,
            score=hit.relevance_score,
            published_at=hit.effective_from.isoformat(),
            citation=Citation(citation_string=hit.citation, url=url),
            base=self.base,
            in_force=InForce.model_validate(hit, from_attributes=True),
        )


class DocumentsReader:
    base: ClassVar[str] = "documents"

    def __init__(self, service: DocumentsService, links: Links) -> None:
        self._service = service
        self._links = links

    async def search(self, asked: Search, most: int, call: Call) -> list[DeskHit]:
        found = await self._service.search(
            SearchApplicationDocs(
                query=asked.query,
                application_ref=asked.application_ref,
                max_results=most + _SPARE,
                mode="hybrid",
            )
        )
        told = [
            hit
            for hit in found.results
            if hit.metadata.total_chunks == 1 or not is_heading(hit.text)
        ]
        return [self._hit(hit) for hit in told[:most]]

    async def fetch(self, id: str, offset: int, call: Call) -> DeskRecord:
        named = document_ref(id)
        page = str(named.page) if named.page else None
        text = await self._service.get_text(
            GetDocumentText(document_id=named.document_id, pages=page)
        )
        return record(
            self.base,
            text.id,
            title=text.citation,
            text=text.text,
            url=self._links.to(text.id),
            citation=text.citation,
            source=text.document_type,
            about=text.model_dump(mode="json", exclude={"text", "status", "id", "next_offset"}),
            offset=offset,
        )

    async def validated(self, reference: str) -> str | None:
        """The day an application was validated, which decides the policy it is judged by."""
        found = await self._service.get_application(reference)
        day = found.validation_date if found else None
        return day.isoformat() if day else None

    def _hit(self, hit: DocumentHit) -> DeskHit:
        url = self._links.to(hit.id)
        of = hit.metadata
        return DeskHit(
            id=hit.id,
            title=f"{of.application_ref}: {hit.citation}",
            url=url,
            source=of.document_type,
            snippet=hit.text,
            score=hit.relevance_score,
            published_at=None,
            citation=Citation(citation_string=f"{of.application_ref}, {hit.citation}", url=url),
            base=self.base,
        )


class FederalReader:
    base: ClassVar[str] = "federal"

    def __init__(self, service: FederalService) -> None:
        self._service = service

    async def search(self, asked: Search, most: int, call: Call) -> list[DeskHit]:
        found = await self._service.search(
            FederalSearch(
                query=asked.query,
                source=asked.source,
                since=asked.since,
                until=asked.until,
                limit=most,
                offset=0,
            )
        )
        return [DeskHit(**dict(hit), base=self.base) for hit in found.results]

    async def fetch(self, id: str, offset: int, call: Call) -> DeskRecord:
        return DeskRecord(**dict(await self._service.fetch(id, offset)), base=self.base)


class GuidanceReader:
    base: ClassVar[str] = "guidance"

    def __init__(self, service: GuidanceService) -> None:
        self._service = service

    async def search(self, asked: Search, most: int, call: Call) -> list[DeskHit]:
        days = {"public_timestamp_from": asked.since, "public_timestamp_to": asked.until}
        question = SearchGuidance(
            query=asked.query[:500],
            filters={name: day for name, day in days.items() if day},
            page=1,
            page_size=most,
            order="relevance",
        )
        found = await self._service.search(question, call_context(call))
        return [
            DeskHit(
                id=hit.id,
                title=hit.title,
                url=hit.url,
                source="charity-commission",
                snippet=hit.summary,
                score=1 / place,
                published_at=hit.public_updated_at,
                citation=Citation(citation_string=f"Charity Commission, {hit.title}", url=hit.url),
                base=self.base,
                attribution=f"{ATTRIBUTION} {DISCLAIMER}",
            )
            for place, hit in enumerate(found.results, 1)
            if hit.id
        ]

    async def fetch(self, id: str, offset: int, call: Call) -> DeskRecord:
        question = GetContentByPath(
            path=id.removeprefix("guidance:"), text_only=True, offset=0, max_chars=None
        )
        page = await self._service.content(question, call_context(call))
        assert isinstance(page, PageText)
        return record(
            self.base,
            page.id,
            title=page.title or page.id,
            text=page.text,
            url=page.url,
            citation=page.citation,
            source="charity-commission",
            about=page.model_dump(mode="json", exclude={"text", "id", "next_offset"}),
            offset=offset,
        )


class TextReader:
    """The one text has no index: its passages are few, and their words are counted."""

    base: ClassVar[str] = "text"

    def __init__(self, service: TextService, links: Links) -> None:
        self._service = service
        self._links = links

    async def search(self, asked: Search, most: int, call: Call) -> list[DeskHit]:
        content = (await self._service.content()).content
        found = best_passage(asked.query, content)
        if found is None:
            return []
        passage, share = found
        url = self._links.to(TEXT_ID)
        return [
            DeskHit(
                id=TEXT_ID,
                title=self._service.description,
                url=url,
                source=self.base,
                snippet=passage,
                score=share,
                published_at=None,
                citation=Citation(citation_string=self._service.description, url=url),
                base=self.base,
            )
        ]

    async def fetch(self, id: str, offset: int, call: Call) -> DeskRecord:
        if id != TEXT_ID:
            raise RecordNotFound(f"There is one text here, {TEXT_ID}, not {id[:100]}")
        info = await self._service.info()
        return record(
            self.base,
            TEXT_ID,
            title=self._service.description,
            text=(await self._service.content()).content,
            url=self._links.to(TEXT_ID),
            citation=self._service.description,
            source=self.base,
            about=info.model_dump(mode="json") if isinstance(info, KbAvailable) else {},
            offset=offset,
        )


def is_heading(passage: str) -> bool:
    """Whether a passage is a title and no more: short, at most two lines, no end of a sentence.

    A section that begins with the next section has such a passage. It has the question's words and
    not their answer, so a search passes over it; read by its id, the section is there.
    """
    short = len(passage) <= _LONGEST_HEADING and passage.count("\n") <= 1
    return short and not passage.rstrip("\"'”’)]").endswith((".", ":", ";", "?", "!"))


def best_passage(query: str, text: str) -> tuple[str, float] | None:
    """The passage with most of the query's words, if it has at least half of them."""
    wanted = set(words_of(query))
    best, most = None, len(wanted) / 2
    for span in split(text):
        shared = len(wanted & set(words_of(span.of(text))))
        if shared and shared >= most and (best is None or shared > most):
            best, most = span, float(shared)
    return (best.of(text), most / len(wanted)) if best else None


def record(
    base: str,
    id: str,
    *,
    title: str,
    text: str,
    url: str,
    citation: str,
    source: str,
    about: dict[str, Any],
    offset: int,
) -> DeskRecord:
    """A record in the federal base's shape, with one piece of its text."""
    end = offset + LONGEST_TEXT
    return DeskRecord(
        id=id,
        title=title,
        text=text[offset:end],
        url=url,
        metadata={"source": source, "citation_string": citation},
        source=source,
        citation=Citation(citation_string=citation, url=url),
        record=about,
        offset=offset,
        total_chars=len(text),
        next_offset=end if end < len(text) else None,
        links={},
        links_url=None,
        base=base,
    )
