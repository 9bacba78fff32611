"""The kinds of documents that portals hold, and how each calls itself in its title."""

import re
from typing import Literal

DocumentKind = Literal[
    "application_form",
    "arboricultural_report",
    "block_plan",
    "cil_form",
    "construction_plan",
    "consultation_letter",
    "consultee_response",
    "covering_letter",
    "decision_notice",
    "design_access_statement",
    "drainage_strategy",
    "ecology_report",
    "elevation",
    "environmental_statement",
    "flood_risk_assessment",
    "floor_plan",
    "heritage_statement",
    "landscape_plan",
    "location_plan",
    "materials",
    "noise_assessment",
    "objection",
    "officer_report",
    "photographs",
    "planning_obligation",
    "planning_statement",
    "roof_plan",
    "section_drawing",
    "site_layout",
    "site_notice",
    "site_plan",
    "street_scene",
    "support",
    "transport_assessment",
    "travel_plan",
    "other",
]

OTHER_KIND = "other"

TYPE_BY_KIND: dict[str, str] = {
    "arboricultural_report": "arboricultural_report",
    "block_plan": "site_plan",
    "design_access_statement": "design_access_statement",
    "drainage_strategy": "flood_risk_assessment",
    "ecology_report": "ecology_report",
    "elevation": "elevation",
    "environmental_statement": "environmental_statement",
    "flood_risk_assessment": "flood_risk_assessment",
    "floor_plan": "floor_plan",
    "heritage_statement": "heritage_statement",
    "location_plan": "site_plan",
    "noise_assessment": "noise_assessment",
    "planning_statement": "planning_statement",
    "roof_plan": "floor_plan",
    "site_layout": "site_plan",
    "site_plan": "site_plan",
    "street_scene": "elevation",
    "transport_assessment": "transport_assessment",
    "travel_plan": "transport_assessment",
}
"""The contract's type of each kind; any other kind is of the type `other`."""

# Patterns match whole words of a title, in which anything but letters and digits is a space. The
# first that matches wins, so what is narrower or has a longer name comes first.
_KINDS_AND_TITLE_ALTERNATIVES: tuple[tuple[DocumentKind, str], ...] = (
    ("cil_form", r"community infrastructure levy|cil (?:additional|form|liability|questions?)"),
    (
        "application_form",
        r"application form|application for (?:full |outline |householder )?planning permission"
        r"|householder application|application for (?:approval|tree works|listed building consent"
        r"|a lawful|prior|removal|permission|consent|advertisement|reserved)|1app",
    ),
    (
        "decision_notice",
        r"decision notice|notice of (?:decision|refusal|approval|permission|planning permission)"
        r"|(?:grant|refusal|approval) of (?:full |outline )?(?:planning permission|consent"
        r"|reserved matters|planning)|planning permission (?:granted|refused)",
    ),
    (
        "officer_report",
        r"officer s? ?report|delegated (?:officer )?(?:report|decision)|committee report"
        r"|report to (?:the )?planning committee|planning committee|officer recommendation",
    ),
    (
        "planning_obligation",
        r"section 106|s106|unilateral undertaking|deed of (?:agreement|variation)"
        r"|planning obligation",
    ),
    (
        "consultee_response",
        r"consultee (?:response|comments?|reply)|consultation (?:response|reply)"
        r"|internal consult\w*|memorandum",
    ),
    (
        "objection",
        r"(?<!no )(?:letter of )?objections?(?: letter)?|petition|customer objects",
    ),
    ("support", r"(?:letter|comment)s? (?:of|in) support|in support of"),
    ("site_notice", r"(?:site|public|press|planning) notice"),
    (
        "consultation_letter",
        r"neighbour (?:notification|consultation)(?: letter)?|consultation letter"
        r"|notification of (?:a )?planning application|notification letter",
    ),
    ("covering_letter", r"cover(?:ing)? letter"),
    (
        "environmental_statement",
        r"environmental (?:impact )?statement|environmental impact assessment|eia"
        r"|non technical summary",
    ),
    (
        "construction_plan",
        r"(?:construction|demolition)(?: \w+){0,4} (?:plan|statement)|cemp|ctmp|cmp",
    ),
    ("travel_plan", r"travel plan"),
    (
        "transport_assessment",
        r"transport(?:ation)? (?:assessment|statement|appraisal|note|report|addendum)"
        r"|(?:traffic|highways?) (?:impact |technical )?"
        r"(?:assessment|statement|report|note|survey)",
    ),
    (
        "design_access_statement",
        r"design (?:and )?access(?: statement)?|design statement|d and a statement",
    ),
    (
        "flood_risk_assessment",
        r"flood(?:ing)? (?:risk|consequences?) (?:assessment|statement|report|appraisal)"
        r"|flood risk|fra",
    ),
    (
        "drainage_strategy",
        r"(?:drainage|suds)(?: \w+){0,3} (?:strategy|statement|report|assessment|scheme)",
    ),
    (
        "noise_assessment",
        r"noise(?: \w+){0,4} (?:assessment|report|survey|statement)"
        r"|acoustic(?:s)? (?:\w+ )?(?:assessment|report|survey|statement|design)",
    ),
    (
        "arboricultural_report",
        r"arboricultural|tree (?:survey|report|constraints|protection|schedule)",
    ),
    (
        "ecology_report",
        r"ecolog(?:y|ical)(?: \w+){0,3} (?:appraisal|assessment|report|survey|statement)"
        r"|biodiversity|habitats? (?:survey|assessment|regulations)|protected species"
        r"|(?:bats?|badger|newt|reptile|bird|dormouse|otter|hedgerow|botanical)(?: \w+){0,3}"
        r" (?:survey|report|assessment|mitigation)",
    ),
    (
        "heritage_statement",
        r"heritage (?:\w+ ){0,2}(?:statement|assessment|report|appraisal)|archaeolog\w+"
        r"|historic (?:building|environment) (?:record|assessment)\w*|written scheme of"
        r" investigation",
    ),
    (
        "planning_statement",
        r"planning (?:\w+ )?statement|supporting (?:planning )?statement"
        r"|statement of case",
    ),
    ("photographs", r"(?:site )?photo(?:graph)?s|photographic (?:schedule|record|survey)"),
    (
        "materials",
        r"(?:schedule of |external |facing |samples? of )+(?:\w+ )?materials"
        r"|materials? (?:schedule|details|palette|and finishes|samples?)",
    ),
)

KINDS_AND_TITLE_REGEXES = tuple(
    (document_kind, rf"\b(?:{title_regex})\b")
    for document_kind, title_regex in _KINDS_AND_TITLE_ALTERNATIVES
)
"""Not compiled yet: each file has a process of its own, and its name often tells its kind."""

# As the title block of a drawing, or the labels on it, call what is drawn.
_KINDS_AND_DRAWING_ALTERNATIVES: tuple[tuple[DocumentKind, str], ...] = (
    ("location_plan", r"location plan|site edged (?:in )?red|outlined (?:in )?red"),
    ("landscape_plan", r"(?:soft |hard )?landscap\w+|planting (?:plan|schedule|proposals?)"),
    ("street_scene", r"street ?scenes?|street elevations?"),
    ("roof_plan", r"roof plans?|(?:plan at )?roof (?:as (?:proposed|existing)|level)"),
    ("block_plan", r"block plan"),
    (
        "floor_plan",
        r"floor ?plans?|(?:ground|first|second|third|basement|attic|lower|upper)(?: and \w+)? floor"
        r"|ga plan|general arrangement plan|level \d+ plan",
    ),
    ("elevation", r"elevations?"),
    ("section_drawing", r"(?:cross |site |long )?sections?"),
    (
        "site_layout",
        r"(?:site|planning|proposed|development) layout|site plan|layout plan|master ?plan"
        r"|(?:sketch|housing|housing site) layout",
    ),
)
KINDS_AND_DRAWING_REGEXES = tuple(
    (document_kind, rf"\b(?:{title_regex})\b")
    for document_kind, title_regex in _KINDS_AND_DRAWING_ALTERNATIVES
)
"""Not compiled yet: few files are drawings, and each is read in a process of its own."""


def make_words_text(raw_text: str) -> str:
    """Return a text as patterns see it: lower case, and anything but letters and digits a space."""
    return " ".join(re.sub(r"[^a-z0-9]+", " ", raw_text.lower().replace("&", " and ")).split())
