"""Tells the type and the kind of a planning document by the name of its file."""

import re
from pathlib import PurePath

from readingroom.ingest.kinds.titles import KINDS_AND_DRAWING_REGEXES, KINDS_AND_TITLE_REGEXES

# Patterns match whole words of the name, in which anything but letters and digits is a space.
# The first type that matches wins, so the subject of a report comes before what it mentions.
_TYPES_AND_NAME_REGEXES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "environmental_statement",
        (
            r"environmental? (?:impact )?(?:statement|assessments?)",
            r"eia(?: (?:screening|scoping))?",
            r"es (?:vol(?:ume)?|chapter|appendix|non technical)",
            r"non technical summary",
        ),
    ),
    (
        "flood_risk_assessment",
        (
            r"flood(?:ing)? (?:risk|consequences?) (?:assessment|statement|report|appraisal)",
            r"flood risk",
            r"fra",
            r"drainage (?:strategy|statement|report|assessment|impact assessment)",
            r"suds (?:strategy|statement|report)",
        ),
    ),
    (
        "design_access_statement",
        (
            r"design (?:and |amp )?access(?: statement)?",
            r"d (?:and |amp )?a statement",
            r"d (?:and |amp )a",
            r"da?s",
            r"design statement",
        ),
    ),
    (
        "transport_assessment",
        (
            r"transport(?:ation)? (?:assessment|statement|appraisal|note|report|addendum)",
            r"(?:framework |residential |workplace |school |outline |interim )*travel plan",
            r"traffic (?:impact|assessment|statement|survey|report|count)s?",
            r"highways? (?:assessment|statement|report|note|technical note)",
            r"(?:swept path|vehicle tracking) analysis",
        ),
    ),
    (
        "noise_assessment",
        (
            r"noise (?:and vibration )?(?:impact )?(?:assessment|report|survey|statement)",
            r"acoustics?(?: \w+)?",
        ),
    ),
    (
        "arboricultural_report",
        (
            r"arboricultur(?:al|ist)(?: \w+)*",
            r"tree (?:survey|report|constraints|protection|schedule|removal)(?: \w+)?",
            r"aia",
            r"bs ?5837",
        ),
    ),
    (
        "ecology_report",
        (
            r"ecolog(?:y|ical)(?: \w+)*",
            r"(?:bats?|badgers?|newts?|gcn|reptiles?|birds?|dormouse|otters?|vole|hedgerow|botanical)"
            r" (?:\w+ )?(?:survey|report|assessment|mitigation)s?",
            r"biodiversity(?: \w+)*",
            r"bng(?: \w+)?",
            r"(?:preliminary )?(?:bat )?roost (?:assessment|survey)",
            r"(?:extended )?phase (?:1|i|one) habitats?(?: survey)?",
            r"protected species(?: \w+)?",
            r"pea",
        ),
    ),
    (
        "heritage_statement",
        (
            r"heritage (?:\w+ )?(?:statement|assessment|report|appraisal|desk based assessment)",
            r"archaeolog(?:y|ical)(?: \w+)*",
            r"historic (?:environment|building|building record)(?: \w+)?",
            r"written scheme of investigation|wsi",
        ),
    ),
    (
        "planning_statement",
        (
            r"planning (?:\w+ )?statement",
            r"supporting (?:planning )?statement",
            r"planning (?:and )?(?:affordable housing|heritage|retail) statement",
        ),
    ),
    (
        "floor_plan",
        (
            r"floor ?plans?",
            r"(?:ground|first|second|third|fourth|lower ground|upper|attic|basement|typical)"
            r" (?:and (?:ground|first|second|third) )?floors?",
            r"roof plans?",
            r"basement plan",
        ),
    ),
    (
        "elevation",
        (
            r"elevations?",
            r"elevational (?:drawing|treatment)s?",
            r"street ?scenes?",
        ),
    ),
    (
        "site_plan",
        (
            r"(?:site )?(?:location|block|layout) (?:\w+ )?plans?",
            r"(?:\w+ )?site (?:\w+ )?plans?",
            r"site layouts?",
            r"(?:illustrative |concept |indicative )?master ?plan",
            r"red line (?:boundary|plan)",
        ),
    ),
)

# More than a file system takes; the name of an upload can be longer.
_MAX_FILE_NAME_CHARS = 300

_RENDERING_FILE_NAME_PATTERN = re.compile(
    r"\b(?:bird ?s ?eyes?(?: view)?s?|perspectives?|cgis?|3 ?d ?(?:visual|view|render|model)\w*"
    r"|(?:artists?|artist s) impressions?|photo ?montages?|street ?scenes?"
    r"|render(?:s|ed|ing|ings)?|visuali[sz]ations?)\b"
)
DRAWING_TYPES = frozenset(("site_plan", "floor_plan", "elevation"))

_TYPES_AND_JOINED_REGEXES = tuple(
    (document_type, rf"\b(?:{'|'.join(name_regexes)})\b")
    for document_type, name_regexes in _TYPES_AND_NAME_REGEXES
)


def find_type_by_name(file_name: str) -> str | None:
    """Return the type that a file's name tells, or None."""
    name_words_text = _make_words_of_name(file_name)
    for document_type, name_regex in _TYPES_AND_JOINED_REGEXES:
        if re.search(name_regex, name_words_text):
            return document_type
    return None


def find_kind_by_name(file_name: str) -> str | None:
    """Return the kind that a file's name tells, or None."""
    name_words_text = _make_words_of_name(file_name)
    if find_type_by_name(file_name) in DRAWING_TYPES:
        drawing_kinds = (
            drawing_kind
            for drawing_kind, title_regex in KINDS_AND_DRAWING_REGEXES
            if re.search(title_regex, name_words_text)
        )
        return next(drawing_kinds, None)
    return next(
        (
            document_kind
            for document_kind, title_regex in KINDS_AND_TITLE_REGEXES
            if re.search(title_regex, name_words_text)
        ),
        None,
    )


def is_named_like_rendering(file_name: str) -> bool:
    """Whether a file is named like a visualisation, which has no text to read."""
    return _RENDERING_FILE_NAME_PATTERN.search(_make_words_of_name(file_name)) is not None


def _make_words_of_name(file_name: str) -> str:
    """Return a name as words: `ProposedSite_Plan02-RevB.pdf` is `proposed site plan 02 rev b`."""
    file_stem = PurePath(file_name).stem[:_MAX_FILE_NAME_CHARS]
    word_boundary_regex = (
        r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})|(?<=[A-Za-z]{3})(?=[0-9])"
    )
    spaced_stem = re.sub(word_boundary_regex, " ", file_stem)
    return re.sub(r"[^a-z0-9]+", " ", spaced_stem.lower().replace("&", " and ")).strip()
