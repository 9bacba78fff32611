"""Headings of policies as adopted plans write them, each with the reference that leads to it."""

import pytest

from tests.ingest.test_plans import PROSE, REASON, get_text, list_policies, read_plan
from tests.requirements import requirement
from tests.support.papers import Paper

HEADINGS = {
    "Policy H1: Homes": "Policy H1",
    "POLICY H 1 – HOMES": "Policy H 1",
    "Policy 12 Homes": "Policy 12",
    "Policy DM3.2: Homes": "Policy DM3.2",
    "Policy H-1 Homes": "Policy H-1",
    "Policy S/RSC/4 Homes": "Policy S/RSC/4",
    "Core Policy 41: Homes": "Core Policy 41",
    "Policy Bicester 12: Homes": "Policy Bicester 12",
    "HOU2 Homes and their density": "Policy HOU2",
    "SP1 – Homes": "Policy SP1",
    "DM3.2: Homes": "Policy DM3.2",
    "H-1 Homes": "Policy H-1",
    "SPATIAL POLICY 1: HOMES": "Spatial Policy 1",
    "Housing Policy 3: Homes": "Housing Policy 3",
    "Site Specific Policy SS3: Homes": "Site Specific Policy SS3",
    "Policy: H1 Homes": "Policy H1",
    "Policy H1(12) Homes": "Policy H1(12)",
    "Policy Env1: Homes": "Policy Env1",
    "Policy H&D1: Homes": "Policy H&D1",
    "POLICY HOUSING 3: HOMES": "Policy HOUSING 3",
    "4.2 Policy H1: Homes": "Policy H1",
    "Policy JP-Strat 1: Homes": "Policy JP-Strat 1",
    "Policy D.SG3: Homes": "Policy D.SG3",
    "Policy H SP2a Homes": "Policy H SP2a",
    "Policy NUA/Ho/1 Homes": "Policy NUA/Ho/1",
    "Policy ShAP 4 Homes": "Policy ShAP 4",
    "Policy DS3(HA1): Homes": "Policy DS3(HA1)",
    "Policy H(a) Homes": "Policy H(a)",
    "POLICY SA – HOMES": "Policy SA",
    "Strategic policy S1, Homes for all": "Strategic policy S1",
    "Sub Area Policy BD1: Homes": "Sub Area Policy BD1",
    "Area Delivery Plan Policy 1: Homes": "Area Delivery Plan Policy 1",
    "Strategic Core Policy 1 (SC1): Homes": "Strategic Core Policy 1 (SC1)",
    "Strategic Policy 1.1 (2) Homes": "Strategic Policy 1.1 (2)",
    "STRATEGIC GROWTH SITE POLICY 1a – HOMES": "Strategic Growth Site Policy 1a",
    "Special Policy Area 1: Homes": "Special Policy Area 1",
}


@pytest.mark.parametrize(("heading", "ref"), HEADINGS.items())
@requirement("ingest:sections:codes")
def test_a_policy_ends_before_the_text_that_explains_it(heading: str, ref: str) -> None:
    code = ref.rpartition("Policy ")[2]
    made = Paper(footer="#")
    made.write("4. Homes", size=18, bold=True)
    made.write(f"{REASON} It is put into effect by Policy {code} of this plan.")
    made.write(heading, bold=True)
    made.write(PROSE * 2)
    made.write("a) it is small; and")
    made.write("b) it is needed.")
    made.write("Reasoned Justification")
    made.write(REASON * 2)

    document = read_plan(made.done())

    assert list_policies(document) == [ref]
    assert get_text(document, ref).startswith(heading)
    assert get_text(document, ref).endswith("it is needed.")
    supporting = get_text(document, f"Supporting text to {ref}")
    assert supporting.startswith("Reasoned Justification")
    kinds = {section.ref: section.kind for section in document.sections}
    assert kinds[ref] == "policy"
    assert kinds[f"Supporting text to {ref}"] == "supporting"
