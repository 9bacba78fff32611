"""Errors of the policy base."""

from readingroom.core.errors import KnowledgeError


class InvalidEffectiveDate(KnowledgeError):
    """The date in a REST query is not YYYY-MM-DD."""

    code = "invalid_effective_date"
    http_status = 400


class PolicyNotFound(KnowledgeError):
    """No policy has this slug; `valid_sources` names those there are."""

    code = "policy_not_found"
    http_status = 404


class PolicyExists(KnowledgeError):
    """A policy has this slug already; add a revision to it instead."""

    code = "policy_already_exists"
    http_status = 409


class RevisionNotFound(KnowledgeError):
    """The policy has no revision of this id; `valid_revisions` names those there are."""

    code = "revision_not_found"
    http_status = 404


class RevisionOverlap(KnowledgeError):
    """Two revisions of one policy would be in force on the same day; shorten one first."""

    code = "revision_overlap"
    http_status = 409


class SoleRevision(KnowledgeError):
    """The only active revision of a policy cannot be deleted."""

    code = "cannot_delete_sole_revision"
    http_status = 409


class RevisionBusy(KnowledgeError):
    """The revision is being ingested; its status says how far it has come."""

    code = "revision_busy"
    http_status = 409


class SectionNotFound(KnowledgeError):
    """The revision has no section of this reference; `nearest` names some it has."""

    code = "section_not_found"
    http_status = 404
