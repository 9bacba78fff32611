"""Tells the kind of a document by the words of its subject, where it does not name itself."""

import re

# Of the opening: further on a document mentions everybody else's subject.
_MAX_OPENING_CHARS = 3_000
_MIN_SUBJECT_WORDS = 3
# How many more of its words the kind must have than the next one.
_MIN_LEAD_OVER_SECOND_KIND = 1

# Each line counts once, whichever of its words is found and however often.
_SUBJECT_WORD_GROUPS_BY_KIND: dict[str, tuple[str, ...]] = {
    "transport_assessment": (
        "trics|trip rate|trip rates|two way trips|trips per dwelling",
        "morning peak|evening peak|am peak|pm peak|peak hour",
        "rfc|picady|arcady|linsig|ratio of flow",
        "junction|junctions|roundabout",
        "visibility|splay|splays",
        "vehicles per hour|vehicles an hour|vehicle movements|traffic counts|counters",
        "swept path|accident data|accident record|collisions",
        "bus stop|bus stops|bus service|bus services|rail station",
        "vehicles|traffic|highway",
    ),
    "flood_risk_assessment": (
        "flood|floods|flooding|floodplain",
        "zone 1|zone 2|zone 3|zone 3a|zone 3b",
        "aod",
        "climate change",
        "1 in 30|1 in 100|1 in 1000|annual probability",
        "greenfield",
        "runoff|run off",
        "l s|litres a second",
        "attenuation|soakaway|soakaways|infiltration|pond|culvert",
        "finished floor|finished floors|floor levels",
        "sequential test|exception test",
        "environment agency",
    ),
    "ecology_report": (
        "bat|bats|pipistrelle|pipistrelles|roost|roosts",
        "newt|newts|reptile|reptiles|badger|badgers|otter|otters|dormouse|dormice|hedgehogs",
        "barn owl|barn owls|nest|nests|nesting|birds",
        "droppings|pellets|edna|dna",
        "natural england",
        "habitat|habitats|species|wildlife|flora|fauna",
        "dusk|dawn|emergence",
        "surveyors|surveyor|ecologist|ecologists",
        "licence",
    ),
    "heritage_statement": (
        "grade i|grade ii|listed",
        "significance",
        "less than substantial|harm",
        "timber|timbers|crucks|masonry",
        "century|medieval|georgian|victorian|tudor",
        "historic|heritage",
        "conservation area|scheduled monument",
        "fabric|repair|repairs",
        "setting",
    ),
    "arboricultural_report": (
        "bs5837|bs 5837",
        "rpa|rpas|root protection|roots",
        "crown|canopy",
        "stem|girth|dbh",
        "oak|ash|beech|sycamore|lime|yew|hawthorn",
        "fell|felled|felling|pruning|pollarding",
        "dieback|decay|fungus|deadwood",
        "tree|trees",
    ),
    "noise_assessment": (
        "db",
        "la90|laeq|lamax|rating level",
        "bs 4142|bs 8233|bs4142|bs8233",
        "background",
        "sound|noise|acoustic",
        "class 1|sound level meter|meter|microphone",
        "barrier|acoustic fence",
        "octave|tonal|impulsive",
        "receptor|receptors|facade|glazing",
    ),
    "construction_plan": (
        "wheel wash|wheel washing",
        "banksman|banksmen",
        "hoarding|hoardings",
        "contractor|contractors",
        "site manager",
        "lorry|lorries|deliveries",
        "dust|sheeted",
        "skip|skips|crane|cranes|scaffold|scaffolding",
        "working hours|hours of work|hours",
        "compound|welfare",
    ),
    "materials": (
        "brick|bricks",
        "slate|slates|tile|tiles",
        "mortar|pointing",
        "ral",
        "rainwater goods|gutters|downpipes",
        "render|cladding",
        "window|windows|joinery|doors",
        "wall|walls",
        "roof",
    ),
    "application_form": (
        "applicant|your name|applicant name",
        "agent|agent if any",
        "has work started|work already started|has the work",
        "ownership certificate|certificate of ownership|certificate a",
        "i declare|declaration",
        "trees and hedges",
        "parking spaces|vehicle access",
        "signed",
        "description of proposed|description of the proposal|what do you want",
    ),
    "officer_report": (
        "recommendation",
        "approve|refuse|grant",
        "ward|parish",
        "site and its surroundings|site and surroundings|the site",
        "history",
        "consultations|consultees",
        "officers consider|officers advise|case officer",
        "assessment|main issues|considerations",
        "letters of representation|representations|letters have",
    ),
    "decision_notice": (
        "town and country planning act",
        "permits|refuses|refusal|refused|hereby",
        "reason|reasons",
        "secretary of state",
        "three years",
        "in accordance with the plans|approved plans",
        "condition|conditions|provided that",
        "head of planning|director|authorised officer",
        "council",
    ),
    "covering_letter": (
        "dear",
        "enclosed|enclose|attached",
        "our client|our client s|on behalf of",
        "yours faithfully|yours sincerely",
        "validation|register the application",
        "fee|fees",
        "forms|drawings",
        "portal",
    ),
    "photographs": (
        "photo|photos|photograph|photographs",
        "view|views",
        "looking north|looking south|looking east|looking west",
        "taken",
        "from the gate|from the road|from the street|from the garden",
    ),
}

_KINDS_AND_WRITER_REGEXES: tuple[tuple[str, str], ...] = (
    (
        "consultee_response",
        r"\b(?:rais\w+ no objections?|no objections? in principle|not wish to restrict the grant"
        r"|(?:highway|lead local flood) authority (?:has|would|recommends|objects)"
        r"|environmental (?:health|protection) (?:team|officer))\b",
    ),
    (
        "support",
        r"\b(?:in favour of (?:this|the)|please (?:approve|allow|grant)|hope (?:that )?(?:the "
        r"committee|you|the council) (?:says? yes|will (?:approve|allow)|approves?|allows?))\b",
    ),
    (
        "objection",
        r"\b(?:please (?:refuse|reject|throw|turn (?:this|it) down)"
        r"|(?:don t|do not) want (?:it|this)|(?:i|we) (?:am|are) (?:strongly |totally )?against"
        r"|should (?:not be (?:allowed|approved)|be (?:refused|rejected))"
        r"|urge (?:you|the council) to (?:refuse|reject)"
        r"|loss of (?:light|privacy)|look straight into)\b",
    ),
)


def find_kind_by_subject(opening_words_text: str) -> str | None:
    """Return the kind whose words a text has, clearly more than any other's; None by none.

    The text is folded: lower case, and anything but letters and digits a space.
    """
    shortened_opening_text = opening_words_text[:_MAX_OPENING_CHARS]
    for document_kind, writer_regex in _KINDS_AND_WRITER_REGEXES:
        if re.search(writer_regex, shortened_opening_text):
            return document_kind
    padded_opening_text = f" {shortened_opening_text} "
    subject_word_counts_by_kind = {
        document_kind: sum(
            any(
                f" {subject_word} " in padded_opening_text for subject_word in word_group.split("|")
            )
            for word_group in word_groups
        )
        for document_kind, word_groups in _SUBJECT_WORD_GROUPS_BY_KIND.items()
    }
    best_kind, second_kind = sorted(
        subject_word_counts_by_kind,
        key=lambda document_kind: -subject_word_counts_by_kind[document_kind],
    )[:2]
    is_clearly_best = subject_word_counts_by_kind[best_kind] >= max(
        _MIN_SUBJECT_WORDS, subject_word_counts_by_kind[second_kind] + _MIN_LEAD_OVER_SECOND_KIND
    )
    return best_kind if is_clearly_best else None
