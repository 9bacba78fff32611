"""What kind of document a file is, by names as councils really receive them."""

import pytest

from readingroom.bases.documents.models import EXPECTED_TYPES
from readingroom.ingest.kinds.classify import classify_document, has_drawings
from readingroom.ingest.kinds.names import is_named_like_rendering
from tests.requirements import requirement

NAMES = {
    "transport_assessment": [
        "Transport_Assessment.pdf",
        "Transport Assessment Part 1 of 3.pdf",
        "25-01178-REM Transport Statement v3.pdf",
        "Framework Travel Plan.pdf",
        "Residential_Travel_Plan_rev_B.pdf",
        "TravelPlan-2025-03-14.pdf",
        "Traffic Impact Assessment FINAL.pdf",
        "2107-TA-Transport-Assessment-Addendum.pdf",
        "Highways Technical Note 02.pdf",
    ],
    "design_access_statement": [
        "Design and Access Statement.pdf",
        "Design & Access Statement (Part 2).pdf",
        "D&A Statement.pdf",
        "D&A.pdf",
        "DAS_Rev_C.pdf",
        "design_access_statement_2025.pdf",
        "DesignAndAccessStatement.pdf",
        "Design_+_Access_Statement_LowRes.pdf",
    ],
    "site_plan": [
        "Site Plan.pdf",
        "Site Location Plan 1-1250.pdf",
        "LocationPlan.pdf",
        "Proposed_Block_Plan_A3.pdf",
        "PL-001 Existing Site Plan Rev A.pdf",
        "Layout Plan - Phase 2.pdf",
        "Proposed Site Layout.pdf",
        "Illustrative Masterplan.pdf",
    ],
    "floor_plan": [
        "Floor Plans.pdf",
        "Proposed Ground Floor Plan.pdf",
        "First Floor.pdf",
        "Plots_12-14_Floor_Plans_and_Elevations.pdf",
        "GroundFloor_Existing.pdf",
        "Proposed Ground and First Floors.pdf",
    ],
    "elevation": [
        "Elevations.pdf",
        "Proposed_Front_Elevation.pdf",
        "PL-210 North and South Elevations.pdf",
        "Street Scene.pdf",
        "Street_Scene_CGI_03.jpg",
        "Existing+Elevations+Rev+P2.pdf",
    ],
    "planning_statement": [
        "Planning Statement.pdf",
        "Supporting Statement.pdf",
        "Planning_Supporting_Statement_v2.pdf",
        "240315 Planning Statement (redacted).pdf",
        "Supporting Planning Statement 12.03.2025.pdf",
    ],
    "environmental_statement": [
        "Environmental Statement Volume 1.pdf",
        "Environmental Impact Assessment.pdf",
        "EIA.pdf",
        "EIA Screening Request.pdf",
        "Environmental_Impact_Statement_Non_Technical_Summary.pdf",
        "ES Chapter 7 - Landscape.pdf",
    ],
    "noise_assessment": [
        "Noise Assessment.pdf",
        "Noise_Impact_Assessment_R02.pdf",
        "Noise Survey May 2024.pdf",
        "Acoustic Report.pdf",
        "Noise and Vibration Assessment.pdf",
        "acoustics-report-final-v4.pdf",
    ],
    "flood_risk_assessment": [
        "Flood Risk Assessment.pdf",
        "FRA.pdf",
        "FRA_and_Drainage_Strategy_RevD.pdf",
        "Surface Water Drainage Strategy.pdf",
        "2345-FRA-001.pdf",
        "Foul_Drainage_Statement.pdf",
        "FloodRiskAssessment_2025-01-09.pdf",
    ],
    "ecology_report": [
        "Bat Survey v2 FINAL.pdf",
        "Ecology Report.pdf",
        "Ecological Impact Assessment.pdf",
        "Preliminary Ecological Appraisal.pdf",
        "Biodiversity Net Gain Assessment.pdf",
        "Great_Crested_Newt_Survey.pdf",
        "Reptile Mitigation Report.pdf",
        "Biodiversity-Metric-4.0.pdf",
        "Extended Phase 1 Habitat Survey.pdf",
    ],
    "heritage_statement": [
        "Heritage Statement.pdf",
        "Heritage Impact Assessment.pdf",
        "Archaeological Evaluation.pdf",
        "Archaeology_WSI.pdf",
        "Built Heritage Assessment rev2.pdf",
        "Historic Building Record.pdf",
    ],
    "arboricultural_report": [
        "Arboricultural Impact Assessment.pdf",
        "Arboricultural_Method_Statement.pdf",
        "Tree Survey.pdf",
        "BS5837 Tree Survey and Constraints Plan.pdf",
        "Tree Protection Plan.pdf",
    ],
    "other": [
        "Infrastructure Delivery Plan.pdf",
        "Application Form.pdf",
        "Covering Letter.pdf",
        "scan0001.pdf",
        "Framework.pdf",
        "Fraser Letter.pdf",
        "Media Report.pdf",
        "Elevated Walkway Contract.pdf",
        "Decision Notice 25_01178_REM.pdf",
        "Traffic Light Invoice.pdf",
        "Exploration Permit.pdf",
        "Treehouse.pdf",
        "CIL Form 1.pdf",
        "Statement of Community Involvement.pdf",
        "Utilities Report.pdf",
    ],
}
# Portals and draughtsmen number their files without a space.
NUMBERED = [
    ("Elevations01.pdf", "elevation"),
    ("ProposedFloorPlan2.pdf", "floor_plan"),
    ("TransportAssessment_v2.pdf", "transport_assessment"),
    ("TreeSurvey2025.pdf", "arboricultural_report"),
    ("FRA1.pdf", "flood_risk_assessment"),
    ("Infra1.pdf", "other"),
    ("PL01.pdf", "other"),
]
TABLE = [*NUMBERED, *((name, kind) for kind, names in NAMES.items() for name in names)]


@pytest.mark.parametrize(("name", "kind"), TABLE)
@requirement("documents:classify", "ingest:classify")
def test_a_name_says_what_kind_of_document_it_is(name: str, kind: str) -> None:
    found = classify_document(name, "")

    assert found.document_type == kind
    is_unknown = found.document_kind == "other"
    expected = ("fallback", "low") if is_unknown else ("filename", "high")
    assert (found.found_by, found.confidence) == expected


@requirement("ingest:classify")
def test_the_table_is_large_and_covers_every_type() -> None:
    assert len(TABLE) >= 80
    assert set(NAMES) == set(EXPECTED_TYPES)
    assert len(EXPECTED_TYPES) == 13


@requirement("documents:classify", "ingest:classify")
def test_a_name_that_says_nothing_leaves_it_to_the_text() -> None:
    text = """This report describes trip generation and trip rates from TRICS. Junction capacity
    was modelled, and the highway network is shown to have room."""

    found = classify_document("scan0001.pdf", text)

    assert (found.document_type, found.found_by, found.confidence) == (
        "transport_assessment",
        "content",
        "medium",
    )


@requirement("ingest:classify")
def test_a_text_that_mentions_everything_equally_is_other() -> None:
    text = """Noise levels, bs 8233 and the acoustic fence; flood zone 3, attenuation and suds."""

    assert classify_document("scan0001.pdf", text).document_type == "other"


@requirement("ingest:classify")
def test_words_within_words_in_the_text_do_not_count() -> None:
    text = "unattenuation pseudosuds xflood zone " * 10

    assert classify_document("scan0001.pdf", text).document_type == "other"


@pytest.mark.parametrize(
    "name",
    [
        "Street_Scene_CGI_03.jpg",
        "Bird's Eye View.pdf",
        "Birds_Eye_View_2.pdf",
        "Perspective 1.pdf",
        "3D Visual.pdf",
        "3D-Visualisation.png",
        "Artist's Impression.pdf",
        "Photomontage VP4.pdf",
        "Proposed Street Scene.pdf",
        "Render_final.png",
        "Rendered Views.pdf",
        "CGIs.pdf",
    ],
)
@requirement("ingest:renderings")
def test_a_rendering_is_known_by_its_name(name: str) -> None:
    assert is_named_like_rendering(name)
    assert has_drawings(name, "other", (), 0.7)


@pytest.mark.parametrize(
    "name", ["Surrender of Lease.pdf", "Transport Assessment.pdf", "Retrospective Application.pdf"]
)
@requirement("ingest:renderings")
def test_other_names_are_not_renderings(name: str) -> None:
    assert not is_named_like_rendering(name)
