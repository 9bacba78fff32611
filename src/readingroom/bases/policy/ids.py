"""Ids of policy sections and passages: `policy:NPPF@rev_NPPF_2024_12#Para 116`."""

import re
from urllib.parse import quote

PAGE_URI_PREFIX = "readingroom://page/"
"""Of the URI of a page's picture: `readingroom://page/SOURCE/REVISION/PAGE?quotation=WORDS`."""
_SECTION_ID_PATTERN = re.compile(
    r"policy:([A-Za-z0-9_-]{1,80})@([A-Za-z0-9_-]{1,120})#(.{1,120})", re.ASCII
)


def make_resource_path(*path_segments: str) -> str:
    """Return the path of a policy's resource: `policy/NPPF/rev_NPPF_2024_12/Para%20116`."""
    return "/".join(["policy", *(quote(path_segment, safe="") for path_segment in path_segments)])


def format_section_id(policy_slug: str, revision_id: str, section_ref: str) -> str:
    """Return the id of a section of a revision."""
    return f"policy:{policy_slug}@{revision_id}#{section_ref}"


def format_passage_id(chunk_id: str) -> str:
    """Return the id of a passage that lies in no section."""
    return f"policy:{chunk_id}"


def parse_section_id(section_id: str) -> tuple[str, str, str] | None:
    """Return policy, revision and section; None when the id names a passage instead."""
    id_match = _SECTION_ID_PATTERN.fullmatch(section_id)
    return (id_match[1], id_match[2], id_match[3]) if id_match else None
