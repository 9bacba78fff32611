"""Plans with codes of several kinds: sites beside policies, lists of sites, facts in tables."""

import pytest

from tests.ingest.test_plans import PROSE, REASON, draw_box, read_plan
from tests.ingest.test_policy_marks import draw_table, list_words
from tests.ingest.test_policy_names import list_policy_refs
from tests.requirements import requirement
from tests.support.papers import LEFT, RIGHT, Paper

PLACES = ("Foundry Yard", "Ings Road", "Mill Lane", "Nab End", "Canal Street", "Quarry Hill")
FACTS = [["Site area", "2.4 hectares"], ["Capacity", "75 homes"], ["Phase", "2"]]
FACT_WORDS = " ".join(" ".join(row) for row in FACTS)


def write_contents(made: Paper, *, chapters: list[str], policies: list[str]) -> None:
    """Write a title page and contents in which policies are set in from chapters."""
    made.write("Borchester Local Plan", size=20, bold=True)
    made.write("Every policy of this plan counts. The policies have codes. A policy is law.")
    made.turn()
    made.write("Contents", size=18, bold=True)
    for number, chapter in enumerate(chapters, 2):
        made.write(f"{chapter} {number}", before=0.2)
    for number, policy in enumerate(policies, 3):
        made.write(f"{policy} {number}", before=0.2, left=LEFT + 20)
    made.turn()


def write_policy(made: Paper, heading: str, rule: str, size: float = 13) -> None:
    made.write(heading, bold=True, size=size)
    made.write(f"{rule} {PROSE}")
    made.write("Reasoned Justification", bold=True)
    made.write(REASON)


@pytest.mark.parametrize("code", ["HG2-{}", "MX1/{}", "HG2-2{}", "H1.{}", "SA-{}", "HG2-{}a"])
@requirement("ingest:sections:codes")
def test_sites_are_sections_below_the_table_that_lists_them(code: str) -> None:
    codes = [code.format(2 * number) for number in range(1, 7)]
    headings = [f"{code} {place}" for code, place in zip(codes, PLACES, strict=True)]
    policy = f"Policy {codes[0][:2]}1: Homes"
    made = Paper(footer="#")
    write_contents(made, chapters=["1. Homes"], policies=[policy, *headings])
    made.write("1. Homes", size=18, bold=True)
    made.move_to(700)
    made.write(policy, bold=True, size=13)
    made.write("The sites in the table below will be developed for homes.")
    draw_table(made, 640, [["Code", "Place"], *map(list, zip(codes, PLACES, strict=True))])
    for number, heading in enumerate(headings, 1):
        made.turn()
        made.write(heading, bold=True, size=14)
        draw_table(made, 700, FACTS)
        made.move_to(620)
        made.write("Site requirements", bold=True)
        made.write(f"Rule {number}. {PROSE}")
        made.write("Reasoned Justification", bold=True)
        made.write(REASON)

    document = read_plan(made.done())

    assert list_policy_refs(document)[-6:] == [f"Policy {code}" for code in codes]
    for number, (code, heading) in enumerate(zip(codes, headings, strict=True), 1):
        expected = f"{heading} {FACT_WORDS} Site requirements Rule {number}. {PROSE}"
        assert list_words(document, f"Policy {code}") == expected.split()


@requirement("ingest:sections:boxes")
def test_facts_that_end_a_page_are_a_part_of_the_policy_that_goes_on_overleaf() -> None:
    made = Paper(footer="#")
    made.write("1. Homes", size=18, bold=True)
    for number, place in enumerate(PLACES, 1):
        made.move_to(640)
        made.write(REASON * 6)
        made.move_to(200)
        made.write(f"Policy SA{number}: {place}", bold=True, size=14)
        draw_table(made, 160, FACTS)
        made.turn()
        made.write("Development must:", bold=True)
        made.write("a) be reached from the high street alone; and")
        made.write("b) keep the trees along the beck.")
        made.write("Reasoned Justification", bold=True)

    document = read_plan(made.done())

    for number, place in enumerate(PLACES, 1):
        expected = (
            f"Policy SA{number}: {place} {FACT_WORDS} Development must: a) be reached from the high"
            " street alone; and b) keep the trees along the beck."
        )
        assert list_words(document, f"Policy SA{number}") == expected.split()


@requirement("ingest:sections:tails")
def test_a_policy_in_bold_below_its_facts_ends_with_its_bold_letters() -> None:
    made = Paper(footer="#")
    made.write("1. Homes", size=18, bold=True)
    for number, place in enumerate(PLACES, 1):
        made.move_to(700)
        made.write(f"Policy SA{number}: {place}", bold=True, size=13)
        draw_table(made, 660, FACTS)
        made.move_to(590)
        made.write(f"Rule {number}. {PROSE}", bold=True)
        made.write(REASON * 2)
        made.turn()

    document = read_plan(made.done())

    for number, place in enumerate(PLACES, 1):
        expected = f"Policy SA{number}: {place} {FACT_WORDS} Rule {number}. {PROSE}"
        assert list_words(document, f"Policy SA{number}") == expected.split()


@pytest.mark.parametrize("end", [";", "", "."])
@requirement("ingest:sections:codes")
def test_a_policy_in_bold_that_lists_the_codes_of_sites_is_whole(end: str) -> None:
    made = Paper(footer="#")
    sites = [f"SA {number} {place}" for number, place in enumerate(PLACES, 1)]
    write_contents(made, chapters=["1. Work"], policies=["EO 1 Land for work", *sites])
    made.write("1. Work", size=18, bold=True)
    made.write("EO 1 Land for work", bold=True, size=13)
    made.write(
        "The following sites of the district will be developed for offices and works:", bold=True
    )
    for site in sites:
        made.write(f"{site}{end}", bold=True, left=LEFT + 20)
    made.write("Other uses will be refused.", bold=True)
    made.write(REASON * 2)
    for number, site in enumerate(sites, 1):
        made.write(site, bold=True, size=13)
        made.write(f"Rule {number}. {PROSE}", bold=True)
        made.write(REASON)

    document = read_plan(made.done())

    listed = " ".join(f"{site}{end}" for site in sites)
    expected = (
        "EO 1 Land for work The following sites of the district will be developed for offices and"
        f" works: {listed} Other uses will be refused."
    )
    assert list_words(document, "Policy EO 1") == expected.split()
    assert list_policy_refs(document)[-6:] == [f"Policy SA {number}" for number in range(1, 7)]
    for number, site in enumerate(sites, 1):
        expected = f"{site} Rule {number}. {PROSE}"
        assert list_words(document, f"Policy SA {number}") == expected.split()


@pytest.mark.parametrize("is_boxed", [True, False])
@requirement("ingest:sections:codes")
def test_codes_beside_policies_of_another_look_are_policies_too(is_boxed: bool) -> None:
    policies = [f"Policy SP {number}: {place}" for number, place in enumerate(PLACES, 1)]
    codes = [f"CS{number} {place}" for number, place in enumerate(PLACES, 1)]
    made = Paper(footer="#")
    write_contents(made, chapters=["1. Places"], policies=[*policies, *codes])
    made.write("1. Places", size=18, bold=True)
    for number, policy in enumerate(policies, 1):
        write_policy(made, policy, f"Rule {number}.")
    for number, code in enumerate(codes, 1):
        made.turn()
        if is_boxed:
            draw_box(made, bottom=620, top=752)
        made.move_to(750)
        made.write(code, bold=True, size=15)
        made.write(f"Rule {number}0. {PROSE}")
        made.move_to(610)
        made.write("Reasoned Justification", bold=True)
        made.write(REASON)

    document = read_plan(made.done())

    assert list_policy_refs(document) == [
        *(f"Policy SP {number}" for number in range(1, 7)),
        *(f"Policy CS{number}" for number in range(1, 7)),
    ]
    assert list_words(document, "Policy CS4") == f"CS4 Nab End Rule 40. {PROSE}".split()


@requirement("ingest:sections:codes")
def test_aims_with_codes_that_the_contents_list_as_chapters_are_no_policies() -> None:
    policies = [f"Policy H{number}: {place}" for number, place in enumerate(PLACES, 1)]
    aims = [f"SO{number} {place}" for number, place in enumerate(PLACES, 1)]
    made = Paper(footer="#")
    write_contents(made, chapters=["1. Aims", *aims, "2. Homes"], policies=policies)
    made.write("1. Aims", size=18, bold=True)
    for aim in aims:
        made.write(aim, bold=True, size=15)
        made.write("The district should be a good place to live in, and jobs will come with it.")
    made.write("2. Homes", size=18, bold=True)
    for number, policy in enumerate(policies, 1):
        write_policy(made, policy, f"Rule {number}.")

    document = read_plan(made.done())

    assert list_policy_refs(document) == [f"Policy H{number}" for number in range(1, 7)]


@pytest.mark.parametrize(
    "end", [" is relevant too, because a home that is let", " is relevant too."]
)
@pytest.mark.parametrize("code", ["D{}", "H{}"])
@requirement("ingest:sections:occurrences")
def test_a_paragraph_that_begins_with_the_name_of_a_policy_is_not_the_policy(
    code: str, end: str
) -> None:
    made = Paper(footer="#")
    made.write("1. Homes", size=18, bold=True)
    for number, place in enumerate(PLACES[:4], 1):
        made.move_to(760)
        for paragraph in (1, 2):
            made.write(REASON, number=f"1.{number}.{paragraph}")
        named = f"Policy {code.format(number)} {place}"
        made.canvas.drawString(LEFT + 36, 560, named + end)
        made.canvas.drawString(LEFT + 36, 546, "should be as good as one that is sold. " * 2)
        made.canvas.setFont("Helvetica-Bold", 11)
        made.canvas.drawString(LEFT, 560, f"1.{number}.3")
        draw_box(made, bottom=280, top=520)
        made.move_to(516)
        made.write(f"Policy H{number} {place}", bold=True, size=13)
        made.write(f"Rule {number}. {PROSE}")
        made.turn()

    document = read_plan(made.done())

    assert list_policy_refs(document) == [f"Policy H{number}" for number in range(1, 5)]
    for number, place in enumerate(PLACES[:4], 1):
        expected = f"Policy H{number} {place} Rule {number}. {PROSE}"
        assert list_words(document, f"Policy H{number}") == expected.split()


@requirement("ingest:sections:codes")
def test_a_site_heads_a_box_that_holds_its_table_of_facts() -> None:
    made = Paper(footer="#")
    made.write("1. Sites", size=18, bold=True)
    for number, place in enumerate(PLACES, 1):
        made.turn()
        heading = f"Site LPS {number}: {place}"
        made.move_to(696)
        made.write(heading, bold=True, size=13)
        bottom = draw_table(made, 660, FACTS)
        made.move_to(bottom - 4)
        made.write(f"Rule {number}. {PROSE}")
        made.canvas.rect(LEFT, 500, RIGHT - LEFT, 200)
        made.move_to(490)
        made.write(REASON * 2)

    document = read_plan(made.done())

    assert list_policy_refs(document) == [f"Site LPS {number}" for number in range(1, 7)]
    for number, place in enumerate(PLACES, 1):
        expected = f"Site LPS {number}: {place} {FACT_WORDS} Rule {number}. {PROSE}"
        assert list_words(document, f"Site LPS {number}") == expected.split()
