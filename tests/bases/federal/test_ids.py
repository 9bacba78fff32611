"""Federal ids: every form of the contract, its aliases, and the way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readingroom.bases.federal.schema import ids
from readingroom.core.errors import UnrecognizedId
from tests.requirements import requirement

congresses = st.integers(1, 999)
numbers = st.integers(1, 99_999)
days = st.dates().map(str)
letters = st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
bioguides = st.builds("{}{:06}".format, letters, st.integers(0, 999_999))
committees = st.sampled_from(["HSAG", "HSAG15", "SSFI", "JSEC", "HSWM03"])
built = st.one_of(
    st.builds(ids.make_bill_id, congresses, st.sampled_from(ids.BILL_TYPES), numbers),
    st.builds(
        ids.make_vote_id,
        st.sampled_from(["house", "senate"]),
        congresses,
        st.integers(1, 3),
        numbers,
    ),
    st.builds(lambda c, n, p: ids.make_law_id(f"{c}-{n}", p), congresses, numbers, st.booleans()),
    st.builds(ids.make_amendment_id, congresses, st.sampled_from(["hamdt", "samdt"]), numbers),
    st.builds(
        ids.make_sap_id,
        congresses,
        days,
        st.lists(st.sampled_from(["hr1", "s22", "hjres3"]), max_size=3),
        st.integers(1, 9),
    ),
    bioguides,
    committees,
    st.builds(ids.make_membership_id, congresses, committees, bioguides),
    st.builds("{:04}-{:05}".format, st.integers(1994, 2099), st.integers(0, 99_999)),
    st.builds("R{:05}".format, st.integers(0, 99_999)),
    st.builds("presdoc:{:04}-{:05}".format, st.integers(1994, 2099), st.integers(0, 99_999)),
)


@requirement("federal:AC-06", "federal:C")
@given(built)
def test_what_we_build_is_read_back_as_itself(id: str) -> None:
    assert ids.parse_federal_id(id).id == id


@requirement("federal:C")
@given(built, st.sampled_from("\u2010\u2011\u2012\u2013\u2014\u2212\uff0d"))
def test_any_unicode_dash_is_a_dash(id: str, dash: str) -> None:
    assert ids.parse_federal_id(id.replace("-", dash)) == ids.parse_federal_id(id)


@requirement("federal:C")
@given(built)
def test_case_and_space_around_an_id_do_not_matter(id: str) -> None:
    assert ids.parse_federal_id(f" {id.swapcase()}\n") == ids.parse_federal_id(id)


@requirement("federal:C")
@given(st.text(max_size=60))
def test_any_text_is_an_id_or_is_refused_with_the_valid_forms(text: str) -> None:
    try:
        found = ids.parse_federal_id(text)
    except UnrecognizedId as refusal:
        assert any(form.startswith("hr:") for form in refusal.hint["valid_prefixes"])
    else:
        assert ids.parse_federal_id(found.id) == found


@requirement("federal:C")
@pytest.mark.parametrize(
    ("written", "source", "id"),
    [
        ("hr:119:1", "bills", "hr:119:1"),
        ("bill:119-hr-1", "bills", "hr:119:1"),
        ("H.R. 1, 119th Congress", "bills", "hr:119:1"),
        ("S. Con. Res. 7 (117th)", "bills", "sconres:117:7"),
        ("house:118:1:37", "roll_call_votes", "house:118:1:37"),
        ("senate:108:2:213", "roll_call_votes", "senate:108:2:213"),
        (
            "crec:CREC-2005-07-20-pt1-PgE1551-2",
            "congressional_record",
            "crec:CREC-2005-07-20-pt1-PgE1551-2",
        ),
        ("pl:117-103", "public_laws", "pl:117-103"),
        ("Public Law 117–103", "public_laws", "pl:117-103"),
        ("S000033", "legislators", "S000033"),
        ("member:C000127", "legislators", "C000127"),
        ("R47892", "crs_reports", "R47892"),
        ("crs:IF13213", "crs_reports", "IF13213"),
        ("2026-08558", "federal_register", "2026-08558"),
        ("2017–21185", "federal_register", "2017-21185"),
        ("fr:E9-1234", "federal_register", "E9-1234"),
        ("C1-2024-12345", "federal_register", "C1-2024-12345"),
        ("HSAG", "committees", "HSAG"),
        ("hsag00", "committees", "HSAG"),
        ("committee:HSAG-15", "committees", "HSAG15"),
        ("sap:119:2025-06-30:hr1", "saps", "sap:119:2025-06-30:hr1"),
        ("cbo:62589", "cbo_cost_estimates", "cbo:62589"),
        ("crpt:119hrpt105", "committee_reports", "crpt:119hrpt105"),
        ("cfr:27:447.21", "cfr_sections", "cfr:27:447.21"),
        ("amdt:117:samdt:4999", "amendments", "amdt:117:samdt:4999"),
        ("comps:1565", "statute_compilations", "comps:1565"),
        (
            "lda:4f33e46d-4018-4899-8926-c03bb9977ae2",
            "lda_filings",
            "lda:4f33e46d-4018-4899-8926-c03bb9977ae2",
        ),
        (
            "docket:EPA-HQ-OAR-2025-0001",
            "regulations_dot_gov_dockets",
            "docket:EPA-HQ-OAR-2025-0001",
        ),
        ("topic:taxation", "topic_taxonomy", "topic:taxation"),
        ("presdoc:2026-11741", "presidential_documents", "presdoc:2026-11741"),
    ],
)
def test_every_form_is_routed_to_its_source(written: str, source: str, id: str) -> None:
    assert ids.parse_federal_id(written) == ids.FederalId(source, id)


def test_a_bill_without_a_congress_needs_one_beside_it() -> None:
    assert ids.parse_federal_id("H.R. 1", congress=119).id == "hr:119:1"
    with pytest.raises(UnrecognizedId):
        ids.parse_federal_id("H.R. 1")
