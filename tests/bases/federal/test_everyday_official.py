"""The everyday questions of researchers over official files: each in one call by MCP alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.federal.base import serve_in_process

pytestmark = [pytest.mark.anyio, pytest.mark.data]

Check = Callable[[Any], bool]


def list_ids(answer: Any) -> list[str]:
    return [row["id"] for row in answer["results"]]


def count_by_key(answer: Any) -> dict[Any, int]:
    return {bucket["key"]: bucket["value"] for bucket in answer["buckets"]}


QUESTIONS: dict[str, tuple[str, dict[str, Any], Check]] = {
    "status of a bill": (
        "get_bill",
        {"bill_id": "H.R. 5376, 117th Congress"},
        lambda told: (told["stage"], told["outcome"]) == ("law", "law"),
    ),
    "full timeline of a bill": (
        "list_records",
        {"source": "bills", "id": "hr:117:4350", "part": "actions", "limit": 200},
        lambda told: len(told["results"]) == told["total"] == 123,
    ),
    "which bills of a Congress became law": (
        "list_records",
        {"source": "bills", "filters": {"congress": 117, "outcome": "law"}},
        lambda told: set(list_ids(told)) == {"hr:117:2471", "hr:117:5376"},
    ),
    "which were vetoed": (
        "list_records",
        {"source": "bills", "filters": {"outcome": "vetoed"}},
        lambda told: list_ids(told) == ["sjres:114:8"],
    ),
    "how many bills at each stage": (
        "count",
        {"resource": "bills", "group_by": "stage"},
        # Of four the status says so, of six the law that is loaded.
        lambda told: count_by_key(told)["law"] == 10,
    ),
    "bills by sponsor": (
        "list_records",
        {"source": "bills", "filters": {"sponsor": "Bernie Sanders", "congress": 117}},
        lambda told: set(list_ids(told)) == {"sconres:117:14", "sconres:117:5"},
    ),
    "bills by committee": (
        "list_records",
        {"source": "bills", "filters": {"committee": "House Ways and Means"}},
        lambda told: len(told["results"]) >= 4,
    ),
    "bills introduced in a month": (
        "list_records",
        {"source": "bills", "filters": {"since": "2021-01-01", "until": "2021-01-31"}},
        lambda told: "hr:117:1" in list_ids(told) and "hr:117:5376" not in list_ids(told),
    ),
    "what a committee got in a month": (
        "list_records",
        {
            "source": "bills",
            "filters": {"committee": "HSWM", "since": "2015-03-01", "until": "2015-03-31"},
        },
        lambda told: list_ids(told) == ["hr:114:1314"],
    ),
    "what a committee did in a month": (
        "list_records",
        {
            "source": "committees",
            "id": "HSWM",
            "part": "actions",
            "filters": {"since": "2015-06-01", "until": "2015-06-30"},
        },
        lambda told: (
            told["total"] == len(told["results"])
            and all(row["date"].startswith("2015-06") for row in told["results"])
        ),
    ),
    "bills by subject": (
        "list_records",
        {"source": "bills", "filters": {"topic": "Taxation", "congress": 117}},
        lambda told: told["results"] and all(":117:" in id for id in list_ids(told)),
    ),
    "which meetings there were in a month": (
        "list_records",
        {"source": "hearings", "filters": {"since": "2014-05-01", "until": "2014-05-31"}},
        lambda told: len(told["results"]) >= 1,
    ),
    "where a law stands in the Code": (
        "fetch",
        {"id": "COMPS-1649"},
        lambda told: len(told["record"]["usc_references"]) > 5,
    ),
    "bills by subject over time": (
        "time_series",
        {
            "resource": "bills",
            "time_field": "introduced_at",
            "interval": "year",
            "filters": {"topic": "Taxation"},
        },
        lambda told: sum(bucket["value"] for bucket in told["buckets"]) >= 3,
    ),
    "most frequent subjects": (
        "count",
        {"resource": "bills", "group_by": "topic", "top": 3},
        lambda told: len(told["buckets"]) == 3,
    ),
    "vote by party": (
        "fetch",
        {"id": "house:118:1:37"},
        # As the Clerk prints it: of eight members only the votes are loaded.
        lambda told: "\nD: yea 204, not voting 6, nay 5" in told["text"],
    ),
    "who voted no": (
        "list_records",
        {
            "source": "roll-call-votes",
            "id": "https://clerk.house.gov/Votes/202337",
            "part": "members",
            "filters": {"position": "no"},
        },
        lambda told: [row["name"] for row in told["results"]] == ["Aderholt"],
    ),
    "agreement with the party, missed votes": (
        "get_legislator_dossier",
        {"bioguide_id": "A000055"},
        lambda told: told["voting"]["items"][0]["votes"] == 1 and told["voting"]["note"],
    ),
    "who votes alike": (
        "list_records",
        {"source": "legislators", "id": "A000055", "part": "voted_alike"},
        lambda told: "loaded" in told["note"],
    ),
    "compare two versions of a bill": (
        "get_bill_text",
        {"bill_id": "hr:116:1058", "compare_with": "rds"},
        lambda told: told["compared_with"] == "rds" and "sections are equal" in told["text"],
    ),
    "what section 4 says": (
        "get_bill_text",
        {"bill_id": "s:116:1014", "section": "4"},
        lambda told: told["text"].startswith("SEC. 4. DUTIES."),
    ),
    "one section of a law": (
        "fetch",
        {"id": "Pub. L. 113-121", "section": "7002"},
        lambda told: told["text"].startswith("SEC. 7002. AUTHORIZATION"),
    ),
    "roster of an earlier Congress": (
        "get_committee_dossier",
        {"committee_id": "HSAG", "congress": 110},
        lambda told: "No roster of the 110th Congress" in told["members"]["note"],
    ),
    "who lobbied on an issue": (
        "count",
        {
            "resource": "lda-filings",
            "group_by": "client",
            "filters": {"issue": "Environment/Superfund"},
        },
        lambda told: count_by_key(told) == {"LEGO SYSTEMS, INC.": 1},
    ),
    "White House position": (
        "count",
        {"resource": "saps", "group_by": "position", "filters": {"since": "2000-01-01"}},
        lambda told: count_by_key(told)["veto_threat"] > 0,
    ),
    "companion bills": (
        "get_bill",
        {"bill_id": "hr:117:4350"},
        lambda told: len(told["related_bills"]) > 10,
    ),
    "records like this one": (
        "list_records",
        {"source": "bills", "id": "hr:117:4350", "part": "similar", "limit": 5},
        lambda told: told["results"] and "hr:117:4350" not in list_ids(told),
    ),
    "what is new since a day": (
        "list_records",
        {"source": "changes", "filters": {"since": "2020-01-01", "source": "roll-call-votes"}},
        lambda told: set(list_ids(told)) == {"house:118:1:37", "senate:108:2:213"},
    ),
    "who represents a district": (
        "resolve_entity",
        {"query": "Texas 21st district", "entity_type": "legislators"},
        lambda told: list_ids(told)[0] == "R000614",
    ),
    "who holds a leadership post": (
        "resolve_entity",
        {"query": "Senate majority leader", "entity_type": "legislators"},
        lambda told: list_ids(told)[0] == "T000250",
    ),
}


async def test_each_everyday_question_is_one_call(official: Path) -> None:
    wrong = {}
    async with serve_in_process(official) as ask:
        for question, (tool, arguments, is_right) in QUESTIONS.items():
            answer = await ask.answer(tool, **arguments)
            if not is_right(answer):
                wrong[question] = str(answer)[:300]
    assert wrong == {}


async def test_a_post_that_each_chamber_has_is_answered_with_both(official: Path) -> None:
    async with serve_in_process(official) as ask:
        named = await ask.answer(
            "resolve_entity", entity_type="legislators", query="chair of Appropriations"
        )
        assert set(list_ids(named)[:2]) == {"C001053", "C001035"}


async def test_a_surname_that_many_have_is_nobody_of_whom_a_file_says_no_more(
    official: Path,
) -> None:
    async with serve_in_process(official) as ask:
        wrong = {"resource": "congressional-record", "filters": {"speaker": "Kennedy"}}
        refused = await ask.rpc("tools/call", {"name": "count", "arguments": wrong})
        assert "may be several" in refused["error"]["message"]


async def test_groups_are_named_and_not_numbered_alone(official: Path) -> None:
    async with serve_in_process(official) as ask:
        for resource, group_by, key, label in (
            ("saps", "president_number", 45, "Donald Trump (45)"),
            ("saps", "president", "Bush", "George H. W. Bush (41), George W. Bush (43)"),
            ("lda-filings", "issue", "ENV", "Environment/Superfund"),
        ):
            told = await ask.answer("count", resource=resource, group_by=group_by)
            assert {one["key"]: one["label"] for one in told["buckets"]}[key] == label


async def test_the_longest_dossiers_are_below_4000_tokens(official: Path) -> None:
    async with serve_in_process(official) as ask:
        for bill_id in ("hr:117:5376", "hr:117:4350", "hr:114:1314", "s:114:2848", "hr:117:2471"):
            told = await ask.call("get_bill_dossier", bill_id=bill_id)
            assert len(told["content"][0]["text"]) / 4 <= 4_000, bill_id
