"""What the room holds as resources: policies, documents and records by URI, with completion."""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote, unquote

from readingroom.bases.documents.service import DocumentsService
from readingroom.bases.federal.service import FederalService
from readingroom.bases.policy.models import ListedRevision, ListPolicyRevisions
from readingroom.bases.policy.registry.records import COUNTING
from readingroom.bases.policy.service import PolicyService
from readingroom.core.errors import KnowledgeError, RecordNotFound
from readingroom.core.ids import TEXT_ID, doc_id, guidance_id, policy_section_id
from readingroom.federation.models import Fetch
from readingroom.federation.service import DeskService
from readingroom.protocol.resources import Resource, Template
from readingroom.protocol.tool import Call

SCHEME = "readingroom://"
_PAGE = 100
_LONGEST = 200_000  # characters of one resource; tools read longer texts in pieces
_MOST = 101  # completions looked for: one more than are shown

_REVISION = re.compile(r"policy/([^/]+)/([^/]+)")
_FORMS: tuple[tuple[re.Pattern[str], Callable[..., str]], ...] = (
    (re.compile(r"policy/([^/]+)/([^/]+)/([^/]+)"), policy_section_id),
    (re.compile(r"document/([^/]+)"), doc_id),
    (re.compile(r"guidance(/.+)"), guidance_id),
    (re.compile(r"federal/([^/]+)"), str),
    (re.compile(r"text"), lambda: TEXT_ID),
)

TEMPLATES = (
    Template(
        f"{SCHEME}policy/{{source}}/{{revision_id}}",
        "policy_revision",
        "A revision of a policy",
        "When it was in force, and its sections.",
    ),
    Template(
        f"{SCHEME}policy/{{source}}/{{revision_id}}/{{section_ref}}",
        "policy_section",
        "A section of a policy",
        "The whole text of one section, such as Para 116.",
    ),
    Template(
        f"{SCHEME}document/{{document_id}}",
        "application_document",
        "A document of a planning application",
        "Its text.",
    ),
    Template(
        f"{SCHEME}federal/{{id}}",
        "federal_record",
        "A federal record",
        "A bill, law, rule, report or person by its id, such as hr:119:1.",
    ),
    Template(
        f"{SCHEME}guidance{{+path}}",
        "guidance_page",
        "A page of Charity Commission guidance",
        "Its text, by its path on GOV.UK.",
    ),
)


class RoomLibrary:
    """Resources are what the desk fetches, under an address that a client can keep."""

    templates: tuple[Template, ...] = TEMPLATES

    def __init__(self, desk: DeskService, services: Mapping[str, Any]) -> None:
        self._desk = desk
        self._policy: PolicyService | None = services.get("policy")
        self._documents: DocumentsService | None = services.get("documents")
        self._federal: FederalService | None = services.get("federal")
        self._has_text = "text" in services

    async def resources(self, after: str | None) -> tuple[Sequence[Resource], str | None]:
        start = int(after) if after and after.isascii() and after.isdecimal() else 0
        found = [*self._texts(), *await self._revisions(), *await self._papers()]
        end = start + _PAGE
        return found[start:end], str(end) if end < len(found) else None

    async def read(self, uri: str, call: Call) -> str:
        if not uri.startswith(SCHEME):
            raise RecordNotFound(f"{uri[:200]!r} is not an address of this room")
        path = uri.removeprefix(SCHEME)
        if (match := _REVISION.fullmatch(path)) and self._policy:
            return await self._outline(unquote(match[1]), unquote(match[2]))
        for pattern, id_of in _FORMS:
            if match := pattern.fullmatch(path):
                return await self._whole(id_of(*map(unquote, match.groups())), call)
        raise RecordNotFound(f"{uri[:200]!r} is not an address of this room")

    async def complete(self, blank: str, begun: str, filled: Mapping[str, str]) -> list[str]:
        values = self._values.get(blank)
        try:
            found = await values(self, begun, filled) if values else []
        except KnowledgeError:  # what was filled in before names nothing
            return []
        return [one for one in found if one.lower().startswith(begun.lower())]

    # --- what is listed ---

    def _texts(self) -> Iterator[Resource]:
        if self._has_text:
            yield Resource(f"{SCHEME}text", TEXT_ID, "Plain text", "The one text, whole.")

    async def _revisions(self) -> list[Resource]:
        if self._policy is None:
            return []
        return [
            Resource(
                f"{SCHEME}policy/{quote(policy.source, safe='')}/{quote(one.revision_id, safe='')}",
                one.revision_id,
                f"{policy.title} ({one.version_label})",
                f"In force from {one.effective_from}.",
            )
            for policy in (await self._policy.list_policies()).policies
            for one in await self._revisions_of(policy.source)
            if one.status in COUNTING
        ]

    async def _revisions_of(self, source: str) -> list[ListedRevision]:
        assert self._policy is not None
        return (await self._policy.list_revisions(ListPolicyRevisions(source=source))).revisions

    async def _papers(self) -> list[Resource]:
        if self._documents is None:
            return []
        return [
            Resource(
                f"{SCHEME}document/{quote(one.document_id, safe='')}",
                one.document_id,
                one.source_file,
                f"{one.document_type} of application {one.application_ref}.",
            )
            for one in await self._documents.list_all_documents()
        ]

    # --- what is read ---

    async def _whole(self, id: str, call: Call) -> str:
        first = await self._desk.fetch(Fetch(id=id), call)
        parts, at = [first.text], first.next_offset
        while at is not None and at < _LONGEST:
            piece = await self._desk.fetch(Fetch(id=id, offset=at), call)
            parts, at = [*parts, piece.text], piece.next_offset
        cut = "" if at is None else f"\n\n[cut: fetch {id} with offset {at} for the rest]"
        cited = first.citation
        return f"{cited.citation_string}\n{cited.url}\n\n{''.join(parts)}{cut}"

    async def _outline(self, source: str, revision_id: str) -> str:
        assert self._policy is not None
        known = {one.revision_id: one for one in await self._revisions_of(source)}
        if revision_id not in known:
            raise RecordNotFound(f"{source} has no revision {revision_id!r}", revisions=[*known])
        revision = known[revision_id]
        until = f"to {revision.effective_to}" if revision.effective_to else "and still"
        sections = await self._policy.list_sections(source, revision_id)
        lines = (f"{ref}, p. {page}" for ref, page in sections.items())
        head = f"{source} ({revision.version_label}), in force from {revision.effective_from}"
        return "\n".join([f"{head} {until}", "", *lines])

    # --- what may be filled in ---

    async def _slugs(self, begun: str, filled: Mapping[str, str]) -> list[str]:
        if self._policy is None:
            return []
        return [one.source for one in (await self._policy.list_policies()).policies]

    async def _revision_ids(self, begun: str, filled: Mapping[str, str]) -> list[str]:
        if self._policy is None or "source" not in filled:
            return []
        return [one.revision_id for one in await self._revisions_of(filled["source"])]

    async def _section_refs(self, begun: str, filled: Mapping[str, str]) -> list[str]:
        if self._policy is None or not {"source", "revision_id"} <= filled.keys():
            return []
        return [*await self._policy.list_sections(filled["source"], filled["revision_id"])]

    async def _document_ids(self, begun: str, filled: Mapping[str, str]) -> list[str]:
        if self._documents is None:
            return []
        return [one.document_id for one in await self._documents.list_all_documents()]

    async def _references(self, begun: str, filled: Mapping[str, str]) -> list[str]:
        if self._documents is None:
            return []
        found = await self._documents.list_all_documents()
        return sorted({one.application_ref for one in found})

    async def _federal_ids(self, begun: str, filled: Mapping[str, str]) -> list[str]:
        return await self._federal.ids(begun, _MOST) if self._federal else []

    _values: ClassVar[Mapping[str, Callable[..., Awaitable[list[str]]]]] = {
        "source": _slugs,
        "revision_id": _revision_ids,
        "section_ref": _section_refs,
        "document_id": _document_ids,
        "application_ref": _references,
        "id": _federal_ids,
        "bill_id": _federal_ids,
    }
