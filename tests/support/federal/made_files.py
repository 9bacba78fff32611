"""A made-up file of every format with a text, full of what is printed beside or between words."""

import json
from dataclasses import dataclass

_USLM = 'xmlns="http://schemas.gpo.gov/xml/uslm" xmlns:dc="http://purl.org/dc/elements/1.1/"'


@dataclass(frozen=True)
class MadeFile:
    """A file, and what it says."""

    data: str
    text: str


_LAW = f"""<pLaw {_USLM}><meta><dc:title>Public Law 119–9902: To keep towers.</dc:title>
<dc:type>Public Law</dc:type><docNumber>9902</docNumber><congress>119</congress>
<publicPrivate>public</publicPrivate></meta><preface><page>139 STAT. 9</page></preface>
<main><longTitle><officialTitle>To keep towers.</officialTitle>
<sidenote><p>Mar. 15, 2025</p><p>[<ref href="/us/bill/119/hr/1">H.R. 1</ref>]</p></sidenote>
</longTitle><enactingFormula>Be it enacted by the House of Representa\u00adtives,</enactingFormula
><sidenote><p>Tower Act.</p></sidenote><section><num value="1">SEC. 1. </num><heading>STATE,
<sidenote><p>33 USC 3910.</p></sidenote> TRIBAL TOWERS.</heading><toc><referenceItem
><designator>Sec. 2.</designator><label>Taxes.<page>139 STAT. 10</page></label
><target>101301<page>139 STAT. 11</page></target></referenceItem></toc></section>
<section><num value="2">SEC. 2. </num><heading>TAXES.</heading><paragraph><num>(a) </num><chapeau
>Section 9502(d)(1) of the Internal Revenue Code of 1986<sidenote><p><ref
href="/us/usc/t26/s9502">26 USC 9502</ref>.</p></sidenote> <amendingAction
>is amended</amendingAction>—</chapeau></paragraph><content>In appointing<sidenote
><p>Time periods.</p></sidenote> individuals (issued on February <page>139 STAT. 12</page>10, 2014)
by lease-<page>139 STAT. 13</page>to-build<sidenote><p>Cost.</p></sidenote>arrangement.</content>
</section></main></pLaw>"""
_LAW_TEXT = """To keep towers.

Be it enacted by the House of Representatives,

SEC. 1. STATE, TRIBAL TOWERS.

Sec. 2. Taxes. 101301

SEC. 2. TAXES.

(a) Section 9502(d)(1) of the Internal Revenue Code of 1986 is amended—

In appointing individuals (issued on February 10, 2014) by lease-to-build arrangement."""

_COMPILATION = f"""<statuteCompilation {_USLM}><meta><dc:title>STEAM ACT</dc:title>
<citableAs>Public Law 91–581</citableAs><property role="fileId">99901</property></meta>
<main><section><num value="1">SEC. 1. </num><heading>STEAM.<ref class="footnoteRef" idref="a"
>1</ref> </heading><footnote id="a"><sup>1</sup><p>So in law.</p></footnote><content>The prospects
of resources<ref class="footnoteRef" idref="b">2</ref> are good.</content><footnote id="b"><sup
>2</sup><p>Probably should read “<term>geothermal resources</term>”.</p></footnote></section></main>
</statuteCompilation>"""
_COMPILATION_TEXT = """SEC. 1. STEAM.[1] The prospects of resources[2] are good.

[1] So in law.

[2] Probably should read “geothermal resources”."""

_BILL = f"""<bill {_USLM}><meta><dc:title>119 HR 9901 IH: To tax.</dc:title>
<citableAs>119hr9901ih</citableAs><docStage>Introduced</docStage><congress>119</congress></meta>
<main><section><num value="1">SECTION 1. </num><heading>RATES.</heading><content>The tax<table
><thead><tr><th>If income<br/>is:</th><th>The tax is:</th></tr></thead><tbody><tr><td
>Not over $19,050</td><td>10% of income</td></tr><tr><td>But not over $77,400</td><td>$1,905</td
></tr></tbody></table></content></section></main></bill>"""
_BILL_TEXT = """SECTION 1. RATES. The tax

If income is: The tax is:

Not over $19,050 10% of income

But not over $77,400 $1,905"""

_VOLUME = f"""<cfrDoc {_USLM}><meta><docNumber>7</docNumber></meta><main><leftRunningHead
>7 CFR Ch. I</leftRunningHead><chapter><part><num value="990">PART 990</num><section><num
value="990.1">§ 990.1</num><heading>Vapor.</heading><content><p>At least 1<inline role="fraction"
>1/4</inline> inches, a pressure below 10<inline class="-gpo-grid-5-1">\u22124</inline> Pa, 5 m<sup
>2</sup> of (EGDN), C<inline class="-gpo-grid-5-2">2</inline>H<inline class="-gpo-grid-5-2"
>4</inline>(NO<inline class="-gpo-grid-5-2">3</inline>)<inline class="-gpo-grid-5-2">2</inline
>.<ref id="x" idref="y" style="-uslm-sgm:SU">1</ref></p><rightRunningHead>Agency</rightRunningHead
><footnote id="y"><content><p><ref idref="x" style="-uslm-sgm:SU">1</ref>\u2009By weight.</p
></content></footnote><p>Not here <sup style="-uslm-sgm:SU">4 5</sup></p></content></section></part>
</chapter></main></cfrDoc>"""
_VOLUME_TEXT = """§ 990.1 Vapor. \
At least 1 1/4 inches, a pressure below 10^\u22124 Pa, 5 m^2 of (EGDN), C2H4(NO3)2.[1]

[1] By weight.

Not here [4 5]"""

_ISSUE = f"""<frDoc {_USLM}><meta><volume>90</volume><dc:date>2025-05-06</dc:date></meta><main
><collection><component><notice><meta><startingPage>1</startingPage><docNumber>2025–90009</docNumber
></meta><preface><subject>Air</subject></preface><main><p>The 1-hour NO<inline
class="-gpo-grid-5-2">2</inline> Standard of CO<E T="52">2</E>, Android<inline
class="-gpo-grid-5-1">TM</inline> (DMM<sup>®</sup>).</p><table><thead><tr><th>Type of<br
/>respondent</th><th>Number</th></tr></thead></table><foreign><SIG><DATED>Dated: May 5, 2025.</DATED
><NAME>Maria Roe,</NAME></SIG></foreign></main></notice></component></collection></main></frDoc>"""
_ISSUE_TEXT = """The 1-hour NO2 Standard of CO2, AndroidTM (DMM®).

Type of respondent Number

Dated: May 5, 2025. Maria Roe,"""

_PAGE = """<html><body><pre>
[Congressional Record Volume 171, Number 9 (Monday, January 6, 2025)]
[Senate]
[Page S10]
From the Congressional Record Online through GPO [<a href="http://www.gpo.gov">www.gpo.gov</a>]


                              TRAVEL

  Register online at <a href="https://
travel.gov/ibrs/">https://
travel.gov/ibrs/</a> or by <a href="mailto:a@b.gov">a@b.gov</a>: CO<INF>2</INF>
was 10<SUP>6</SUP> &lt; before.<bullet>
</pre></body></html>"""
_PAGE_TEXT = """TRAVEL

Register online at https://
travel.gov/ibrs/ or by a@b.gov: CO2
was 10^6 < before."""

_REPORT = """<html>
<title> - TRAVEL ACT</title>
<body><pre>
[House Report 119-9909]
[From the U.S. Government Publishing Office]

The Act of <a
href="https://www.gpo.gov">1986</a> costs $10<SUP>6</SUP>.
</pre></body></html>"""
_REPORT_TEXT = """[House Report 119-9909]
[From the U.S. Government Publishing Office]

The Act of 1986 costs $10^6."""

MADE_FILES = {
    "PLAW-119publ9902.xml": MadeFile(_LAW, _LAW_TEXT),
    "COMPS-99901.xml": MadeFile(_COMPILATION, _COMPILATION_TEXT),
    "BILLS-119hr9901ih.xml": MadeFile(_BILL, _BILL_TEXT),
    "CFR-2025-title7-vol1.xml": MadeFile(_VOLUME, _VOLUME_TEXT),
    "FR-2025-05-06.xml": MadeFile(_ISSUE, _ISSUE_TEXT),
    "CREC-2025-01-06-pt1-PgS10.htm": MadeFile(_PAGE, _PAGE_TEXT),
    "CRPT-119hrpt9909.htm": MadeFile(_REPORT, _REPORT_TEXT),
}
"""By name."""

CRS_REPORT = json.dumps(
    {
        "CRSReport": {
            "id": "R99990",
            "title": "Rates",
            "summary": "<div>First.</div><div>Then<table><tr><td>$19,050</td><td>10%</td></tr>"
            "</table></div>",
        }
    }
)
CRS_TEXT = "First.\nThen\n$19,050\n10%"
