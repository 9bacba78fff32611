"""What the bills of the made-up Congress are about, and the words their titles are made of."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BillSubject:
    """What bills are about: where they are filed, and the words their titles are made of."""

    policy_area: str
    subject_term: str
    title_nouns: Sequence[str]
    beneficiaries: str


BILL_SUBJECTS = (
    BillSubject(
        "Agriculture and Food",
        "Soil conservation",
        ("Soil Health", "Orchard", "Seed Bank", "Beekeeping"),
        "farmers who keep the soil covered in winter",
    ),
    BillSubject(
        "Energy",
        "Electric power storage",
        ("Grid Storage", "Geothermal Heat", "Transformer Reserve"),
        "utilities that keep spare transformers and store power for the evening",
    ),
    BillSubject(
        "Armed Forces and National Security",
        "Veterans' medical care",
        ("Veterans Clinic", "Veterans Travel", "Service Dog"),
        "veterans who live more than an hour from a clinic",
    ),
    BillSubject(
        "Public Lands and Natural Resources",
        "Forest and wildfire management",
        ("Wildfire Lookout", "River Restoration", "Wetland"),
        "agencies that rebuild lookouts, clear culverts and replant river banks",
    ),
    BillSubject(
        "Science, Technology, Communications",
        "Broadband",
        ("Rural Broadband", "Weather Radar", "Ocean Mapping"),
        "counties in which a tenth of the homes have no fast connection",
    ),
    BillSubject(
        "Health",
        "Hospital care",
        ("Rural Hospital", "Midwifery", "Price List"),
        "hospitals that publish what they charge and stay open in small towns",
    ),
    BillSubject(
        "Arts, Culture, Religion",
        "Museums and libraries",
        ("Museum Loan", "Folk Archive", "Public Library"),
        "museums and libraries that lend to each other",
    ),
)
TITLE_ENDINGS = ("Improvement Act", "Grants Act", "Fairness Act", "Modernization Act", "Study Act")
