"""Tells the kind of a document by what is in it: its titles, its words, its lines."""

import re
from collections.abc import Sequence

from readingroom.ingest.kinds.subjects import find_kind_by_subject
from readingroom.ingest.kinds.titles import (
    KINDS_AND_DRAWING_REGEXES,
    KINDS_AND_TITLE_REGEXES,
    OTHER_KIND,
    TYPE_BY_KIND,
    make_words_text,
)
from readingroom.ingest.read.page import Line, RawPage

_TYPICAL_PHRASES_BY_KIND: dict[str, tuple[str, ...]] = {
    "transport_assessment": (
        *("trip generation", "trip rates", "junction capacity", "transport assessment"),
        *("travel plan", "modal split", "highway network", "trics", "visibility splay"),
    ),
    "design_access_statement": (
        *("design and access statement", "design principles", "character and appearance"),
        *("design evolution", "access and movement", "design concept", "materials palette"),
    ),
    "planning_statement": (
        *("planning statement", "planning policy context", "planning balance", "section 38(6)"),
        *("material considerations", "principle of development", "planning history"),
    ),
    "environmental_statement": (
        *(
            "environmental statement",
            "environmental impact assessment",
            "likely significant effects",
        ),
        *("cumulative effects", "eia regulations", "residual effects", "scoping opinion"),
    ),
    "noise_assessment": (
        *("noise assessment", "noise levels", "laeq", "bs 4142", "bs 8233", "sound insulation"),
        *("noise sensitive receptors", "acoustic"),
    ),
    "flood_risk_assessment": (
        *("flood risk assessment", "flood zone", "surface water drainage", "sequential test"),
        *("attenuation", "greenfield runoff", "suds", "lead local flood authority"),
    ),
    "ecology_report": (
        *("protected species", "phase 1 habitat", "bat roost", "ecological appraisal"),
        *(
            "biodiversity net gain",
            "great crested newt",
            "habitat survey",
            "ecological enhancement",
        ),
    ),
    "heritage_statement": (
        *(
            "heritage statement",
            "listed building",
            "conservation area",
            "significance of the heritage",
        ),
        *("heritage asset", "archaeological", "historic environment record", "scheduled monument"),
    ),
    "arboricultural_report": (
        *(
            "arboricultural",
            "root protection area",
            "bs 5837",
            "tree survey",
            "tree protection plan",
        ),
        *("category b", "tree preservation order", "crown spread"),
    ),
}
_MIN_TYPICAL_PHRASES = 3
# Only the opening is examined: a document says what it is on its first pages.
_MAX_OPENING_TEXT_CHARS = 60_000

# Lines at the top of the first page among which a title stands.
_MAX_LINES_SEARCHED_FOR_TITLE = 14
# A longer line is a sentence, which names other documents as well.
_MAX_TITLE_LINE_CHARS = 140
# Letters this many times the usual height belong to a title.
_MIN_LARGE_LETTER_RATIO = 1.15

# What only such a document says, wherever its title is; the first that matches wins.
_KINDS_AND_PHRASE_REGEXES: tuple[tuple[str, str], ...] = (
    ("cil_form", r"community infrastructure levy.{0,80}\b(?:form|regulations)"),
    ("planning_obligation", r"\b(?:deed|covenants?|undertaking)\b.{0,300}\bsection 106\b"),
    ("planning_obligation", r"\bsection 106\b.{0,300}\b(?:deed|covenants?|recitals|whereas)\b"),
    (
        "decision_notice",
        r"\b(?:hereby )?(?:grants?|refuses?)\b.{0,30}\b(?:permission|consent)\b.{0,250}"
        r"\b(?:conditions?|reasons?)\b",
    ),
    (
        "officer_report",
        r"\b(?:case officer|recommended for (?:approval|refusal)|officer recommendation)\b.{0,800}"
        r"\b(?:representations|recommendation|conclusion|site description|considerations)\b",
    ),
    (
        "site_notice",
        r"\b(?:notice of application|gives notice that an application|under article 15)\b",
    ),
    (
        "consultation_letter",
        r"\b(?:council has received (?:the|an|this) application|you are invited to (?:make|comment)"
        r"|(?:wish|want) to comment\b.{0,60}\b(?:by|before)|adjoining occupier)",
    ),
    (
        "support",
        r"\b(?:(?:writing|write) (?:in|to) support|(?:i|we) (?:fully |strongly )?"
        r"support (?:this|the)|comments in support of)\b",
    ),
    (
        "consultee_response",
        r"\b(?:thank you for (?:consulting|your consultation|your letter|the consultation)"
        r"|consultation response|no objections? subject to|we have no objection"
        r"|recommends? (?:that )?(?:the following )?conditions|summary of .{0,40}advice)\b",
    ),
    (
        "objection",
        r"\b(?:(?:wish|want|writing|write) to (?:strongly |formally )?(?:object|oppose)"
        r"|(?:i|we) (?:strongly |wholly |formally )*(?:object|oppose)|customer objects"
        r"|undersigned.{0,80}\b(?:object|oppose))\b",
    ),
    (
        "covering_letter",
        r"\b(?:please find enclosed|we enclose|enclosed (?:is|are|please)|on behalf of (?:our|my)"
        r" client.{0,80}\b(?:submit|enclose))\b",
    ),
    (
        "application_form",
        r"\b(?:applicant (?:details|name)|planning portal reference)\b.{0,900}"
        r"\b(?:declaration|certificate of ownership|description of)\b",
    ),
)
# Of the opening in which these phrases are looked for.
_MAX_DEFINING_PHRASE_CHARS = 3_000

_TITLE_BLOCK_WORD_REGEX = (
    r"\b(?:drawing (?:no|number|title)|d(?:wg|rg) ?(?:no)?|scale|rev(?:ision)?|drawn|checked"
    r"|do not scale|a[0-4]|1 (?:50|100|200|250|500|1000|1250|2500))\b"
)
_MIN_TITLE_BLOCK_WORDS = 2
# Of a page; one with more words is a text with a figure.
_MAX_DRAWING_WORDS = 350
# Of a page with a title block; the borders of a table are fewer.
_MIN_LINES_OF_DRAWING = 40
# Of a page whose drawing is a picture, beside its title block.
_MIN_IMAGE_RATIO_OF_DRAWING = 0.5
# Of a page without one.
_MIN_LINES_WITHOUT_TITLE_BLOCK = 1_500
_ROOM_NAME_REGEX = (
    r"\b(?:kitchen|bed(?:room)? ?\d?|living|lounge|bath(?:room)?|hall|wc|dining|utility|en suite"
    r"|landing|office|warehouse)\b"
)
_PLANT_NAME_REGEX = (
    r"\b(?:crataegus|prunus|acer|quercus|betula|cornus|corylus|sorbus|tilia|carpinus|ilex|salix"
    r"|turf|topsoil|wildflowers?|shrubs?|hedge mix|whips|planting|soft ?works)\b"
)
_COMPASS_DIRECTION_REGEX = r"\b(?:north|south|east|west)\b"
# Labels of these that tell what is drawn where no title does, each counted once.
_KINDS_AND_LABEL_REGEXES = (
    ("floor_plan", _ROOM_NAME_REGEX),
    ("landscape_plan", _PLANT_NAME_REGEX),
    ("elevation", _COMPASS_DIRECTION_REGEX),
)
_MIN_DRAWING_LABELS = 3
_MAP_MAKER_REGEX = r"\b(?:crown copyright|ordnance survey|os (?:mastermap|licen[cs]e))\b"
# Without a title, the scale tells the two maps that every application has.
_MAP_KINDS_AND_SCALE_REGEXES = (
    ("location_plan", r"\b1 (?:1250|2500)\b"),
    ("block_plan", r"\b1 (?:200|500)\b"),
)


def is_drawing_page(raw_page: RawPage) -> bool:
    """Whether a page is a drawing made of lines, with few words and most often a title block."""
    if (
        raw_page.drawn_line_count < _MIN_LINES_OF_DRAWING
        and raw_page.image_ratio <= _MIN_IMAGE_RATIO_OF_DRAWING
    ):
        return False
    page_words_text = make_words_text(" ".join(page_line.text for page_line in raw_page.lines))
    if len(page_words_text.split()) > _MAX_DRAWING_WORDS:
        return False
    title_block_words = {
        word_match[0] for word_match in re.finditer(_TITLE_BLOCK_WORD_REGEX, page_words_text)
    }
    if len(title_block_words) >= _MIN_TITLE_BLOCK_WORDS:
        return (
            raw_page.drawn_line_count >= _MIN_LINES_OF_DRAWING
            or raw_page.image_ratio > _MIN_IMAGE_RATIO_OF_DRAWING
        )
    return raw_page.drawn_line_count >= _MIN_LINES_WITHOUT_TITLE_BLOCK


def determine_kind_by_content(raw_pages: Sequence[RawPage], document_text: str) -> str:
    """Return the kind of a document by its first page, else by its words; `other` by neither."""
    first_page = next((raw_page for raw_page in raw_pages if raw_page.lines), None)
    if first_page is not None and is_drawing_page(first_page):
        return _determine_drawing_kind(first_page.lines)
    return (
        (_find_kind_by_title(first_page.lines) if first_page is not None else None)
        or _find_kind_by_defining_phrase(document_text)
        or _find_kind_by_typical_phrases(document_text)
        or find_kind_by_subject(make_words_text(document_text[:_MAX_OPENING_TEXT_CHARS]))
        or OTHER_KIND
    )


def _determine_drawing_kind(page_lines: Sequence[Line]) -> str:
    """Return what is drawn: by the largest letters that say so, else by the labels on it."""
    for page_line in sorted(page_lines, key=lambda page_line: -page_line.letter_height):
        line_words_text = make_words_text(page_line.text[:_MAX_TITLE_LINE_CHARS])
        for document_kind, title_regex in KINDS_AND_DRAWING_REGEXES:
            if re.search(title_regex, line_words_text):
                return document_kind
    page_words_text = make_words_text(" ".join(page_line.text for page_line in page_lines))
    for labelled_kind, label_regex in _KINDS_AND_LABEL_REGEXES:
        different_labels = {
            label_match[0] for label_match in re.finditer(label_regex, page_words_text)
        }
        if len(different_labels) >= _MIN_DRAWING_LABELS:
            return labelled_kind
    if re.search(_MAP_MAKER_REGEX, page_words_text):
        for map_kind, scale_regex in _MAP_KINDS_AND_SCALE_REGEXES:
            if re.search(scale_regex, page_words_text):
                return map_kind
    return OTHER_KIND


def _find_kind_by_title(page_lines: Sequence[Line]) -> str | None:
    """Return the kind that a title names: in large letters, else alone on a line at the top."""
    first_lines = page_lines[:_MAX_LINES_SEARCHED_FOR_TITLE]
    median_letter_height = sorted(page_line.letter_height for page_line in page_lines)[
        len(page_lines) // 2
    ]
    large_lines = [
        page_line
        for page_line in first_lines
        if page_line.letter_height > _MIN_LARGE_LETTER_RATIO * median_letter_height
    ]
    # Together, because a title may go on over several lines.
    large_words_text = make_words_text(
        " ".join(page_line.text for page_line in large_lines)[: 4 * _MAX_TITLE_LINE_CHARS]
    )
    for document_kind, title_regex in KINDS_AND_TITLE_REGEXES:
        if re.search(title_regex, large_words_text):
            return document_kind
    for page_line in first_lines:
        line_words_text = make_words_text(page_line.text)
        if len(page_line.text) > _MAX_TITLE_LINE_CHARS or page_line.text.rstrip().endswith(
            (".", ",", ";")
        ):
            continue
        if page_line.text[
            0
        ].islower():  # the middle of a sentence: "we have no / objection to make"
            continue
        for document_kind, title_regex in KINDS_AND_TITLE_REGEXES:
            if re.match(title_regex, line_words_text) or (
                len(line_words_text.split()) <= 8 and re.search(title_regex, line_words_text)
            ):
                return document_kind
    return None


def _find_kind_by_defining_phrase(document_text: str) -> str | None:
    opening_text = " ".join(document_text[:_MAX_DEFINING_PHRASE_CHARS].lower().split())
    # Compiled here: each file has a process of its own, and most name their kind in a title.
    return next(
        (
            document_kind
            for document_kind, phrase_regex in _KINDS_AND_PHRASE_REGEXES
            if re.search(phrase_regex, opening_text, flags=re.DOTALL)
        ),
        None,
    )


def _find_kind_by_typical_phrases(document_text: str) -> str | None:
    opening_text = " ".join(document_text[:_MAX_OPENING_TEXT_CHARS].lower().split())
    phrase_counts_by_kind = {
        document_kind: sum(
            1
            for typical_phrase in typical_phrases
            if _contains_phrase(opening_text, typical_phrase)
        )
        for document_kind, typical_phrases in _TYPICAL_PHRASES_BY_KIND.items()
    }
    best_kind = max(
        phrase_counts_by_kind, key=lambda document_kind: phrase_counts_by_kind[document_kind]
    )
    # A tie says nothing: a planning statement mentions everybody else's subject once.
    second_phrase_count = max(
        phrase_count
        for document_kind, phrase_count in phrase_counts_by_kind.items()
        if document_kind != best_kind
    )
    is_clearly_best = phrase_counts_by_kind[best_kind] >= max(
        _MIN_TYPICAL_PHRASES, second_phrase_count + 1
    )
    return best_kind if is_clearly_best and best_kind in TYPE_BY_KIND else None


def _contains_phrase(searched_text: str, typical_phrase: str) -> bool:
    """Whether a phrase stands in a text as whole words."""
    # Looked for as it is first: a pattern takes much longer, and most texts lack most phrases.
    return (
        typical_phrase in searched_text
        and re.search(rf"\b{re.escape(typical_phrase)}(?!\w)", searched_text) is not None
    )
