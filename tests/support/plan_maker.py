"""Plans that no council wrote, in as many typesettings as councils use, with the truth about them.

Every plan has contents, chapters with supporting text and policies, a monitoring table and a list
of superseded policies that name all codes again, and an appendix.
"""

import io
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from reportlab.lib import colors
from reportlab.lib.enums import TA_JUSTIFY, TA_LEFT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import (
    BaseDocTemplate,
    Flowable,
    Frame,
    FrameBreak,
    NextPageTemplate,
    PageBreak,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
    TableStyle,
)

from readingroom.ingest.document import Document
from tests.support.plans import Verdict, fold

_WORDS = """
    development proposals housing employment landscape character neighbours amenity highway parking
    flooding drainage heritage settlement village countryside design materials access open space
    biodiversity energy water quality noise community services retail centre tourism viability
    evidence assessment mitigation contribution infrastructure
"""
TITLES = (
    "Housing Density and Type",
    "Affordable Homes",
    "Rural Exception Sites",
    "The Historic Environment",
    "Flood Risk and Drainage",
    "Parking Standards",
    "Town Centres and Retail",
    "Design Quality",
    "Open Space and Recreation",
    "Employment Land",
    "Gypsies and Travellers",
    "Renewable Energy",
)


_FONTS = {"Helvetica": ("Helvetica", "Helvetica-Bold"), "Times": ("Times-Roman", "Times-Bold")}


@dataclass(frozen=True)
class PlanStyle:
    """How a plan is set."""

    name: str
    headings: Sequence[str]
    """Patterns for the headings of policies, chapter after chapter; `{n}` counts, `{c}` is the
    chapter, `{title}` the title."""
    references: Sequence[str]
    """The references that they lead to, by the same patterns."""
    title_below: bool = False
    """Whether the title stands on a line of its own below the code."""
    capitals: bool = False
    columns: int = 1
    box: Literal["none", "fill", "frame", "rule"] = "none"
    bold_text: bool = False
    """Whether the whole policy is set in bold."""
    heading_size: float = 12
    heading_bold: bool = True
    heading_outside_box: bool = False
    paragraphs: Literal["decimal", "running", "none"] = "decimal"
    explanation: str = "Reasoned Justification"
    """The heading above what explains a policy; empty for none."""
    explained_first: bool = False
    """Whether the explanation stands above the policy, as older plans have it."""
    clauses: Literal["letters", "numbers", "roman", "bullets", "decimals"] = "letters"
    parts: bool = False
    """Whether the policies have parts with headings of their own."""
    grid: bool = True
    """Whether the monitoring table has rules."""
    repeated_in_appendix: bool = False
    heading_bar: bool = False
    """Whether the heading stands in a dark bar of its own above the box."""
    heading_cells: bool = False
    """Whether code and title stand side by side in cells."""
    subheadings: bool = False
    """Whether words in bold divide each policy."""
    font: str = "Helvetica"
    body_size: float = 10
    is_justified: bool = False
    length: int = 1
    """How many times longer the policies are."""


@dataclass
class MadePlan:
    """A plan, and the words of each of its policies by reference."""

    content: bytes
    policies: dict[str, list[str]] = field(default_factory=dict)


def make_plan(style: PlanStyle, seed: int = 1, chapters: int = 4) -> MadePlan:
    """Return a plan in this style."""
    return _Maker(style, seed, chapters).make()


def judge_policies(document: Document, plan: MadePlan) -> dict[str, Verdict]:
    """Return, for each policy, whether its section is the policy, whole and alone."""
    return {ref: _judge(document, ref, words) for ref, words in plan.policies.items()}


def _judge(document: Document, ref: str, words: Sequence[str]) -> Verdict:
    spans = [section for section in document.sections if fold(ref) in map(fold, section.path)]
    if not spans:
        return "missing"
    text = " ".join(document.text[span.start_offset : span.end_offset] for span in spans)
    found, wanted = _letters(text), _letters(" ".join(words))
    if found == wanted:
        return "exact"
    is_there = wanted in found or (found in wanted and len(found) > 0.9 * len(wanted))
    return "stray" if is_there and len(found) < 1.5 * len(wanted) + 80 else "wrong"


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


class _Maker:
    def __init__(self, style: PlanStyle, seed: int, chapters: int) -> None:
        self._style = style
        self._random = random.Random(seed)
        self._chapters = chapters
        self._policies: dict[str, list[str]] = {}
        self._codes: list[tuple[str, str]] = []
        self._number = self._paragraph = self._paragraph_total = 0
        plain_font, bold_font = _FONTS[style.font]
        body = ParagraphStyle(
            "body",
            fontName=plain_font,
            fontSize=style.body_size,
            leading=1.25 * style.body_size,
            spaceAfter=0.6 * style.body_size,
            alignment=TA_JUSTIFY if style.is_justified else TA_LEFT,
        )
        self._body = body
        self._small = ParagraphStyle("small", body, fontSize=9, leading=11, spaceAfter=0)
        self._chapter = ParagraphStyle(
            "chapter", body, fontName=bold_font, fontSize=18, leading=22, spaceAfter=12
        )
        self._subheading = ParagraphStyle("sub", body, fontName=bold_font, spaceBefore=6)
        self._heading = ParagraphStyle(
            "heading",
            body,
            fontName=bold_font if style.heading_bold else plain_font,
            fontSize=style.heading_size,
            leading=1.25 * style.heading_size,
            spaceBefore=8,
        )
        font = bold_font if style.bold_text else plain_font
        self._policy_text = ParagraphStyle("policy", body, fontName=font)
        self._clause = ParagraphStyle(
            "clause", self._policy_text, leftIndent=18, bulletIndent=0, firstLineIndent=0
        )

    def make(self) -> MadePlan:
        chapters = [self._make_chapter(number) for number in range(1, self._chapters + 1)]
        story: list[Flowable] = [Paragraph("Newtown Local Plan 2020 to 2040", self._chapter)]
        story += [PageBreak(), Paragraph("Contents", self._chapter), *self._make_contents()]
        story += [NextPageTemplate("body"), PageBreak()]
        for chapter in chapters:
            story += chapter
        story += [*self._make_monitoring(), *self._make_superseded(), *self._make_appendix()]
        file = io.BytesIO()
        document = BaseDocTemplate(file, pagesize=A4)
        document.addPageTemplates([self._make_template("front", 1), self._make_template("body")])
        document.build(story)
        return MadePlan(file.getvalue(), self._policies)

    def _make_template(self, name: str, columns: int = 0) -> PageTemplate:
        width, height = A4
        columns = columns or self._style.columns
        column_width = (width - 110 - 16 * (columns - 1)) / columns
        frames = [
            Frame(55 + index * (column_width + 16), 60, column_width, height - 130, 0, 0, 0, 0)
            for index in range(columns)
        ]
        return PageTemplate(name, frames, onPage=_draw_furniture)

    def _make_contents(self) -> Iterator[Flowable]:
        page = 3
        for code, title in self._codes:
            page += self._random.randint(0, 1)
            yield Paragraph(f"{code} {title} {'.' * 60} {page}", self._small)

    def _make_chapter(self, number: int) -> list[Flowable]:
        self._number, self._paragraph = number, 0
        title = self._case(f"{number}. {('Homes', 'Jobs', 'Places', 'Nature')[(number - 1) % 4]}")
        flowables: list[Flowable] = [Paragraph(title, self._chapter)]
        flowables += [self._write_paragraph() for _ in range(2)]
        for position in range(1, 4):
            flowables += self._make_policy(number, position)
        return [*flowables, PageBreak()]

    def _make_policy(self, chapter: int, position: int) -> list[Flowable]:
        style = self._style
        count = 3 * (chapter - 1) + position
        title = TITLES[(count - 1) % len(TITLES)]
        pattern = (chapter - 1) % len(style.headings)
        values = {"n": count, "p": position, "c": chapter, "letter": chr(64 + count)}
        heading = style.headings[pattern].format(**values, title=self._case(title))
        reference = style.references[pattern].format(**values)
        self._codes.append((reference.removeprefix("Policy "), title))
        heading_lines = heading.split("\n")
        texts = self._write_policy_texts(count)
        self._policies[reference] = [*heading_lines, *(text for _, text in texts)]
        head = self._set_heading(heading_lines)
        body: list[Flowable] = [Paragraph(text, paragraph_style) for paragraph_style, text in texts]
        boxed = self._draw_box(body if style.heading_outside_box else [*head, *body])
        policy = [*head, *boxed] if style.heading_outside_box else boxed
        if style.heading_bar:
            policy = [*head, *self._draw_box(body)]
        explanation: list[Flowable] = []
        if style.explanation:
            explanation.append(Paragraph(style.explanation, self._subheading))
        explanation += [self._write_paragraph() for _ in range(self._random.randint(2, 4))]
        if style.explained_first:
            return [*explanation, *policy]
        return [*policy, *explanation]

    def _set_heading(self, lines: Sequence[str]) -> list[Flowable]:
        """Return the heading as it is set: as lines, in a bar, or in two cells."""
        if self._style.heading_cells:
            code, _, title = lines[0].partition(": ")
            cells = [[Paragraph(text, self._heading) for text in (f"{code}:", title)]]
            return [Table(cells, colWidths=[100, None])]
        paragraphs: list[Flowable] = [Paragraph(line, self._heading) for line in lines]
        if not self._style.heading_bar:
            return paragraphs
        white = ParagraphStyle("white", self._heading, textColor=colors.white)
        cells = [[Paragraph(line, white)] for line in lines]
        bar = TableStyle([("BACKGROUND", (0, 0), (-1, -1), colors.darkgreen)])
        return [Spacer(1, 8), Table(cells, style=bar)]

    def _write_policy_texts(self, count: int) -> list[tuple[ParagraphStyle, str]]:
        texts = [
            (
                self._policy_text,
                f"Proposals under rule {count} will be permitted where they "
                f"protect the {self._pick(8)}, and where:",
            )
        ]
        for index in range(self._random.randint(2, 5)):
            mark = {
                "letters": f"{'abcdef'[index]})",
                "numbers": f"{index + 1}.",
                "roman": f"({('i', 'ii', 'iii', 'iv', 'v', 'vi')[index]})",
                "bullets": "•",
                "decimals": f"{count}.{index + 1}",
            }[self._style.clauses]
            texts.append((self._clause, f"{mark} the {self._pick(12)} of the place is kept;"))
        texts += [
            (self._policy_text, f"Step {index} of rule {count} concerns the {self._pick(60)}.")
            for index in range(2, self._style.length + 1)
        ]
        if self._style.subheadings:
            texts.append((self._subheading, "Scale and character"))
            texts.append((self._policy_text, f"The scale keeps to the {self._pick(10)}."))
        if self._style.parts:
            texts.append((self._subheading, "Part B – Villages"))
        texts.append(
            (
                self._policy_text,
                f"In the villages the {self._pick(14)} will be required "
                f"as well. This ends rule {count}.",
            )
        )
        return texts

    def _write_paragraph(self) -> Flowable:
        self._paragraph += 1
        self._paragraph_total += 1
        number = {
            "decimal": f"{self._number}.{self._paragraph} ",
            "running": f"{self._paragraph_total}. ",
            "none": "",
        }[self._style.paragraphs]
        code = self._random.choice(self._codes)[0] if self._codes else "this plan"
        text = (
            f"{number}The Council has looked at the {self._pick(15)}. It finds that Policy {code} "
            f"is needed because of the {self._pick(18)} in the district, and the {self._pick(9)}."
        )
        return Paragraph(text, self._body)

    def _draw_box(self, flowables: list[Flowable]) -> list[Flowable]:
        style = self._style
        if style.box == "none":
            return flowables
        commands: list[Any] = {
            "fill": [("BACKGROUND", (0, 0), (-1, -1), colors.Color(0.86, 0.92, 0.84))],
            "frame": [("BOX", (0, 0), (-1, -1), 1, colors.black)],
            "rule": [("LINEBEFORE", (0, 0), (0, -1), 3, colors.darkgreen)],
        }[style.box]
        # A row for each paragraph, so that the box may go on on the next page.
        table = Table([[flowable] for flowable in flowables], style=TableStyle(commands))
        return [Spacer(1, 6), table, Spacer(1, 10)]

    def _make_monitoring(self) -> Iterator[Flowable]:
        yield Paragraph(self._case(f"{self._chapters + 1}. Monitoring"), self._chapter)
        rows = [["Policy", "Indicator", "Target"]]
        for code, title in self._codes:
            indicator = f"Number of schemes that meet the {self._pick(5)}"
            rows.append([code if self._style.grid else f"{code} {title}", indicator, "All of them"])
        cells = [[Paragraph(cell, self._small) for cell in row] for row in rows]
        commands = [("GRID", (0, 0), (-1, -1), 0.5, colors.grey)] if self._style.grid else []
        width = (A4[0] - 110 - 16 * (self._style.columns - 1)) / self._style.columns
        yield Table(
            cells, colWidths=[width * 0.3, width * 0.5, width * 0.2], style=TableStyle(commands)
        )
        yield PageBreak()

    def _make_superseded(self) -> Iterator[Flowable]:
        yield Paragraph(self._case("Appendix 1: Superseded policies"), self._chapter)
        rows = [["Policy of the 2004 plan", "Replaced by"]]
        rows += [
            [f"H{number} {title}", f"Policy {code}"]
            for number, (code, title) in enumerate(self._codes, 1)
        ]
        cells = [[Paragraph(cell, self._small) for cell in row] for row in rows]
        yield Table(cells, style=TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.grey)]))
        yield PageBreak()

    def _make_appendix(self) -> Iterator[Flowable]:
        yield Paragraph(self._case("Appendix 2: Glossary and list of policies"), self._chapter)
        for code, title in self._codes:
            line = f"Policy {code}: {title}"
            is_bold = self._style.repeated_in_appendix
            yield Paragraph(line, self._subheading if is_bold else self._body)
            yield Paragraph(
                f"A summary of the {self._pick(10)} and the {self._pick(8)}.", self._body
            )
        yield FrameBreak()

    def _case(self, text: str) -> str:
        return text.upper() if self._style.capitals else text

    def _pick(self, count: int) -> str:
        return " ".join(self._random.choice(_WORDS.split()) for _ in range(count))


def _draw_furniture(canvas: Any, document: Any) -> None:
    canvas.setFont("Helvetica", 8)
    canvas.drawString(55, A4[1] - 40, "Newtown Local Plan")
    canvas.drawCentredString(A4[0] / 2, 30, str(canvas.getPageNumber()))


_CODE_FIRST = ("HOU{p} {title}", "EMP{p} {title}", "DES{p} {title}", "ENV{p} {title}")
_CODE_REFS = ("Policy HOU{p}", "Policy EMP{p}", "Policy DES{p}", "Policy ENV{p}")

_MORE_CODES = {
    "letter after the number": ("Policy EN{n}A: {title}", "Policy EN{n}A"),
    "small letter after the number": ("Policy SS{n}a: {title}", "Policy SS{n}a"),
    "noughts": ("Policy ST-0{p}{c} - {title}", "Policy ST-0{p}{c}"),
    "blank in the code": ("Policy SI {n} {title}", "Policy SI {n}"),
    "several hyphens": ("Policy AR-UA-ST{n}: {title}", "Policy AR-UA-ST{n}"),
    "slash without Policy": ("HC/{n} {title}", "Policy HC/{n}"),
    "kind in brackets": ("Policy H{n} (Strategic Policy): {title}", "Policy H{n}"),
    "full stop": ("Policy H{n}. {title}", "Policy H{n}"),
    "bar": ("Policy H{n} | {title}", "Policy H{n}"),
    "allocation": ("Site Allocation SA{n}: {title}", "Site Allocation SA{n}"),
    "letter alone": ("Policy {letter}: {title}", "Policy {letter}"),
    "decimal number": ("Policy {c}.{p} {title}", "Policy {c}.{p}"),
    "parish before the code": ("Policy ABC NP{n} {title}", "Policy ABC NP{n}"),
    "topic before Policy": ("HOUSING POLICY H{n}: {title}", "Policy H{n}"),
}

STYLES = (
    PlanStyle("code and title", _CODE_FIRST, _CODE_REFS),
    PlanStyle("code and title, two columns", _CODE_FIRST, _CODE_REFS, columns=2),
    PlanStyle("numbered, coloured box", ["Policy {n}: {title}"], ["Policy {n}"], box="fill"),
    PlanStyle(
        "numbered, framed, two columns",
        ["Policy {n} {title}"],
        ["Policy {n}"],
        box="frame",
        columns=2,
        paragraphs="running",
    ),
    PlanStyle("SP and dash", ["SP{n} – {title}"], ["Policy SP{n}"], box="frame"),
    PlanStyle(
        "DM with decimals", ["Policy DM{c}.{p} – {title}"], ["Policy DM{c}.{p}"], clauses="roman"
    ),
    PlanStyle("hyphen codes", ["H-{n} {title}"], ["Policy H-{n}"], paragraphs="none"),
    PlanStyle(
        "slash codes", ["Policy S/{n}: {title}"], ["Policy S/{n}"], box="fill", clauses="numbers"
    ),
    PlanStyle("dash and capitals", ["POLICY CS{n} – {title}"], ["Policy CS{n}"], capitals=True),
    PlanStyle(
        "strategic policy in capitals",
        ["STRATEGIC POLICY {n}: {title}"],
        ["Strategic Policy {n}"],
        capitals=True,
        paragraphs="running",
    ),
    PlanStyle("code above its title", ["Policy H{n}\n{title}"], ["Policy H{n}"]),
    PlanStyle(
        "code above its title, in a box",
        ["Policy H{n}\n{title}"],
        ["Policy H{n}"],
        box="fill",
        columns=2,
    ),
    PlanStyle("bare code above its title", ["HO{n}\n{title}"], ["Policy HO{n}"], box="frame"),
    PlanStyle(
        "policy in bold",
        ["Policy {n} {title}"],
        ["Policy {n}"],
        bold_text=True,
        explanation="",
        heading_size=10,
    ),
    PlanStyle(
        "explained first",
        ["POLICY E{n}: {title}"],
        ["Policy E{n}"],
        explained_first=True,
        explanation="",
    ),
    PlanStyle(
        "explained first, in a box",
        ["Policy E{n}: {title}"],
        ["Policy E{n}"],
        explained_first=True,
        explanation="",
        box="fill",
    ),
    PlanStyle("parts", ["Policy LP{n}: {title}"], ["Policy LP{n}"], parts=True, box="fill"),
    PlanStyle(
        "numbered clauses without a box",
        ["Policy LP{n} – {title}"],
        ["Policy LP{n}"],
        clauses="numbers",
        explanation="Explanation",
    ),
    PlanStyle(
        "decimal clauses",
        ["Policy {n} – {title}"],
        ["Policy {n}"],
        clauses="decimals",
        box="frame",
        paragraphs="running",
    ),
    PlanStyle(
        "heading above its box",
        ["Policy BE{n}: {title}"],
        ["Policy BE{n}"],
        box="fill",
        heading_outside_box=True,
    ),
    PlanStyle(
        "rule in the margin",
        ["Policy TR{n} {title}"],
        ["Policy TR{n}"],
        box="rule",
        explanation="Supporting text",
    ),
    PlanStyle(
        "not bold", ["Policy NE{n}: {title}"], ["Policy NE{n}"], heading_bold=False, heading_size=13
    ),
    PlanStyle(
        "plain letters",
        ["Policy NE{n}: {title}"],
        ["Policy NE{n}"],
        heading_bold=False,
        heading_size=10,
        explanation="Justification",
    ),
    PlanStyle(
        "repeated in an appendix",
        ["Policy R{n}: {title}"],
        ["Policy R{n}"],
        repeated_in_appendix=True,
        grid=False,
        clauses="bullets",
    ),
    PlanStyle(
        "core policies",
        ["Core Policy {n}: {title}"],
        ["Core Policy {n}"],
        box="frame",
        explanation="",
    ),
    PlanStyle(
        "names of places",
        ["Policy Newtown {n}: {title}"],
        ["Policy Newtown {n}"],
        box="fill",
        clauses="bullets",
    ),
    PlanStyle(
        "bar above the box", ["Policy H{n}: {title}"], ["Policy H{n}"], box="fill", heading_bar=True
    ),
    PlanStyle(
        "code and title in cells",
        ["Policy H{n}: {title}"],
        ["Policy H{n}"],
        box="frame",
        heading_cells=True,
    ),
    PlanStyle("words in bold", ["Policy H{n}: {title}"], ["Policy H{n}"], subheadings=True),
    PlanStyle(
        "words in bold, in a box",
        ["Policy H{n}: {title}"],
        ["Policy H{n}"],
        subheadings=True,
        box="fill",
        columns=2,
    ),
    PlanStyle("over three pages", ["Policy H{n}: {title}"], ["Policy H{n}"], box="fill", length=14),
    PlanStyle("over three pages, no box", ["Policy H{n}: {title}"], ["Policy H{n}"], length=14),
    PlanStyle(
        "over columns, frame", ["H{n} {title}"], ["Policy H{n}"], box="frame", length=6, columns=2
    ),
    PlanStyle(
        "serifs, justified",
        ["Policy H{n} – {title}"],
        ["Policy H{n}"],
        font="Times",
        is_justified=True,
        body_size=12,
        heading_size=12,
    ),
    PlanStyle(
        "serifs, justified, two columns",
        ["Policy H{n} {title}"],
        ["Policy H{n}"],
        font="Times",
        is_justified=True,
        columns=2,
        body_size=9,
        heading_size=9,
        box="fill",
    ),
    PlanStyle(
        "reasons",
        ["Policy H{n}: {title}"],
        ["Policy H{n}"],
        explanation="Reasons",
        paragraphs="none",
    ),
    PlanStyle(
        "delivery",
        ["Policy H{n}: {title}"],
        ["Policy H{n}"],
        paragraphs="none",
        explanation="Delivery and Monitoring",
    ),
    *(
        PlanStyle(name, [heading], [reference], capitals=heading.isupper())
        for name, (heading, reference) in _MORE_CODES.items()
    ),
)
