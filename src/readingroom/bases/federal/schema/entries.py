"""What a loader hands over: a record, what belongs to it, and what of it can be searched."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from readingroom.bases.federal.schema.records import Citation, LinkKind, Record

Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Head:
    """What a record is found by before its text: each part weighs differently in a search."""

    title: str
    abstract: str = ""
    action: str = ""


@dataclass(frozen=True)
class Text:
    """The text of a record, or one version of it; `part` tells versions apart."""

    part: str
    body: str
    title: str
    url: str
    raw_sha256: str
    stage: str | None = None
    dated: str | None = None


@dataclass(frozen=True)
class Link:
    """What a record has to do with another, and the words or the field that say so."""

    kind: LinkKind
    id: str
    """Of the other record, in its canonical form; it need not be loaded yet."""
    evidence: str


@dataclass(frozen=True)
class Entry:
    """One record as a file tells it.

    `partial` says that the file knows less than the record's own source would: it makes the record
    when there is none, and otherwise leaves it as it is.
    """

    record: Record
    partial: bool = False
    head: Head | None = None
    text: Text | None = None
    facets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    names: Sequence[str] = ()
    children: Mapping[str, Rows] = field(default_factory=dict)
    """Rows of child tables by table, each without the id of the record they belong to."""
    links: Sequence[Link] = ()
    """Replaced as a whole when the same loader reads the record, or this part of it, again."""
    revision: str | None = None
    """What its source says of its own newness; an older revision never replaces a newer one."""

    @property
    def is_mention(self) -> bool:
        """Whether it says no more than that there is such a record."""
        return self.partial and not (self.text or self.links or self.children)


@dataclass(frozen=True)
class Origin:
    """Where and when a file's records come from: half of every citation."""

    retrieved_at: str
    sha256: str


def cited(
    origin: Origin,
    *,
    url: str,
    org: str,
    cite: str,
    published_at: str | None,
    raw_sha256: str | None = None,
) -> dict[str, Any]:
    """The fields that every record takes from its origin."""
    citation = f"{cite} ({published_at or 'n.d.'})"
    return {
        "url": url,
        "source_url": url,
        "source_org": org,
        "published_at": published_at,
        "retrieved_at": origin.retrieved_at,
        "raw_sha256": raw_sha256 or origin.sha256,
        "citation_string": citation,
        "citation": Citation(citation_string=citation, url=url),
    }


def digest(told: Any) -> str:
    """The hash of one item of a larger file, so that a change elsewhere in it is not its change."""
    written = json.dumps(told, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(written.encode()).hexdigest()
