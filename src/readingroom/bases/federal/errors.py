"""Errors of the federal base."""

from readingroom.core.errors import KnowledgeError


class RecordGone(KnowledgeError):
    """The record was withdrawn; `hint.successor_id` names what took its place, if anything did."""

    code = "record_gone"
    http_status = 410


class SourceNotSearchable(KnowledgeError):
    """A registry holds names, not texts: `hint.use_tool` names the tool that looks names up."""

    code = "source_not_searchable"
    http_status = 422


class NotSearchableSemantically(KnowledgeError):
    """The source has no vectors; `hint.valid_sources` lists those that have."""

    code = "source_not_searchable_semantically"
    http_status = 422


class AggregateTooBroad(KnowledgeError):
    """The aggregate would read more rows, or give more buckets, than one may;
    `hint.suggest_narrowing` lists filters that would fit.
    """

    code = "aggregate_too_broad"
    http_status = 422


class AggregateTimeout(KnowledgeError):
    """The aggregate was stopped at its time limit; `hint.suggest_narrowing` lists narrower ones."""

    code = "aggregate_timeout"
    http_status = 503


class LoadFailed(KnowledgeError):
    """Nothing of what was named could be loaded; the message says why."""

    code = "load_failed"
    http_status = 422
