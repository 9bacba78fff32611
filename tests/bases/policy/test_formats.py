"""Revisions that are no PDF: their headings tell the sections, and their files are kept."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import docx
import pytest
from markdown_it import MarkdownIt

from readingroom.bases.policy.admin.pictures import PolicyPictures
from readingroom.bases.policy.backup import BACKUP_FILE_NAME_PATTERN, restore_backup, write_backup
from readingroom.bases.policy.doctor import PolicyDoctor
from readingroom.bases.policy.errors import PolicyNotFound, RevisionBusy
from readingroom.bases.policy.ingest.files import check_revision_file
from readingroom.bases.policy.models import (
    GetPolicySection,
    IngestPolicyRevision,
    ListPolicySections,
    PolicyHit,
    SearchPolicy,
)
from readingroom.core.progress import no_progress
from readingroom.ingest.document import Document, PageWord
from readingroom.ingest.errors import UnsupportedFileType
from readingroom.ingest.private_copy import PrivateCopy
from tests.requirements import requirement
from tests.support.kit import invoke
from tests.support.model import link_model
from tests.support.policy.base import (
    PLAIN,
    PlainPipeline,
    PolicyLibrary,
    make_brief_pdf,
    make_revision,
    open_library,
    plain,
)

pytestmark = pytest.mark.both_engines("full")

RULE = "New homes will be permitted within the towns, where they keep the character of the place."
REASON = "The council has looked at the evidence and finds that homes are needed in the towns."
PLAN = f"""\
# 4. Homes

4.1 {REASON}

## Policy H1: Homes in towns

{RULE}

a) They are small; and

b) they are needed.

### Reasoned justification

4.2 {REASON} That is why.

## Policy H2: Homes in villages

In villages homes are permitted on the edge of the place, where people of the parish need them.
"""


def write_word(markdown: str) -> bytes:
    """The plan as python-docx writes it: headings are styles."""
    document = docx.Document()
    for block in markdown.split("\n\n"):
        marks, _, text = block.strip().partition(" ")
        if set(marks) == {"#"}:
            document.add_heading(text, level=len(marks))
        else:
            document.add_paragraph(block.strip())
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


FILES = {
    ".docx": write_word(PLAN),
    ".md": PLAN.encode(),
    ".html": f"<title>Plan</title>{MarkdownIt().render(PLAN)}".encode(),
}


async def add_plan(library: PolicyLibrary, extension: str, label: str = "One") -> str:
    await library.add("PLAN", category="local_plan")
    spool = library.spool(FILES[extension])
    answer = await library.admin.revise_policy(
        "PLAN", make_revision(label, "2020-01-01"), spool, no_progress, extension
    )
    return answer.revision_id


@pytest.mark.anyio
@pytest.mark.parametrize("extension", FILES)
@requirement("policy:formats")
async def test_the_headings_of_a_text_are_its_sections(tmp_path: Path, extension: str) -> None:
    async with open_library(tmp_path / "policy") as library:
        revision_id = await add_plan(library, extension)
        section = await library.service.get_section(
            GetPolicySection(source="PLAN", section_ref="Policy H1")
        )
        listed = await library.service.list_section_titles(ListPolicySections(source="PLAN"))
        hits = await library.service.search(SearchPolicy(query="homes people of the parish need"))
        kept_path = library.service.ingestion.files.locate_file("PLAN", revision_id)
        kept_content = kept_path.read_bytes()

    assert section.text.startswith("Policy H1: Homes in towns")
    assert section.text.endswith("they are needed.") and RULE in section.text
    titles = {
        listed_section.section_ref: listed_section.section_title
        for listed_section in listed.sections
    }
    assert titles["Policy H1"] == "Homes in towns" and titles["Policy H2"] == "Homes in villages"
    assert hits.results[0].section_ref == "Policy H2"
    assert (kept_path.name, kept_content) == (f"document{extension}", FILES[extension])


@pytest.mark.anyio
@requirement("policy:formats")
async def test_a_text_is_read_again_and_replaced_by_another_format(tmp_path: Path) -> None:
    async with open_library(tmp_path / "policy") as library:
        revision_id = await add_plan(library, ".docx")
        again = await library.admin.reingest_and_wait("PLAN", revision_id, no_progress)
        path = library.inbox("plan.pdf", make_brief_pdf("Printed"))
        await library.service.ingest_revision(
            IngestPolicyRevision(
                source="PLAN", revision_id=revision_id, file_path=path, reindex=True
            ),
            no_progress,
        )
        kept_path = library.service.ingestion.files.locate_file("PLAN", revision_id)
        names = [file.name for file in kept_path.parent.iterdir()]
        stored = await library.admin.get_revision("PLAN", revision_id)
        diagnosis = await PolicyDoctor(library.service, is_repairing=False).diagnose_policies()

    assert again.chunks_created > 0
    assert names == ["document.pdf"]
    assert stored.file_path == str(kept_path)
    assert diagnosis.complaints == []


@pytest.mark.anyio
@requirement("policy:formats")
async def test_the_tool_reads_a_text_and_refuses_what_is_no_policy(tmp_path: Path) -> None:
    async with open_library(tmp_path / "policy") as library:
        await library.add("PLAN", category="local_plan")
        revision_id = await library.register("PLAN", "One", "2020-01-01")

        def name_file(file_name: str, content: bytes) -> IngestPolicyRevision:
            path = library.inbox(file_name, content)
            return IngestPolicyRevision(source="PLAN", revision_id=revision_id, file_path=path)

        for file_name, content in {"table.csv": b"a,b\n", "letter.eml": b"Subject: a\n\nb"}.items():
            with pytest.raises(UnsupportedFileType, match=r"\.docx"):
                await library.service.ingest_revision(name_file(file_name, content), no_progress)
        answer = await library.service.ingest_revision(
            name_file("plan.md", FILES[".md"]), no_progress
        )
        kept_path = library.service.ingestion.files.locate_file("PLAN", revision_id)

    assert answer.chunks_created > 0
    assert kept_path.name == "document.md"


REFUSED: dict[str, tuple[str, bytes]] = {
    "a picture named .md": (".md", b"\x89PNG\r\n\x1a\n" + bytes(100)),
    "a text named .docx": (".docx", b"Policy H1: Homes"),
    "a PDF named .html": (".html", b"%PDF-1.7\n"),
    "an old document named .docx": (".docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)),
    "an empty text": (".md", b""),
    "a text named .pdf": (".pdf", b"Policy H1: Homes"),
}


@pytest.mark.parametrize("case", REFUSED)
@requirement("policy:formats")
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path, case: str) -> None:
    extension, content = REFUSED[case]
    (tmp_path / "spool").write_bytes(content)
    with pytest.raises(UnsupportedFileType, match=r"may be one of \.pdf, \.docx, \.md, \.html"):
        check_revision_file(tmp_path / "spool", extension)


@requirement("policy:formats")
def test_the_shell_adds_a_text_imports_one_and_deletes_a_policy_whole(tmp_path: Path) -> None:
    data = link_model(tmp_path / "room")
    at = ("--data", str(data))

    def say(*args: str, returncode: int = 0) -> str:
        ended = invoke(*args, *at)
        assert ended.returncode == returncode, ended.stderr
        return ended.stdout + ended.stderr

    (tmp_path / "plan.docx").write_bytes(FILES[".docx"])
    (tmp_path / "plan.md").write_bytes(FILES[".md"])
    say("policy", "add", "PLAN", "--title", "The plan", "--category", "local_plan")
    dated = ("--label", "One", "--from", "2020-01-01")
    say("policy", "revise", "PLAN", str(tmp_path / "plan.docx"), *dated)
    assert RULE in " ".join(say("policy", "section", "PLAN", "Policy H1").split())
    (tmp_path / "list.json").write_text(
        '{"policies": [{"source": "OTHER", "title": "Other", "category": "local_plan", '
        '"revisions": [{"file": "plan.md", "version_label": "1", '
        '"effective_from": "2020-01-01"}]}]}'
    )
    say("policy", "import", str(tmp_path / "list.json"))
    assert "Homes in villages" in say("policy", "sections", "OTHER")

    # The shell asks, and somebody who does not answer has not agreed.
    assert "Delete 'The plan' and its 1 revisions?" in say(
        "policy", "delete-policy", "PLAN", returncode=1
    )
    assert "Policy H1" in say("policy", "sections", "PLAN")
    assert say("policy", "delete-policy", "PLAN", "--yes").startswith("Deleted PLAN: 1 revisions")
    assert "There is no policy 'PLAN'" in say("policy", "show", "PLAN", returncode=1)
    assert not (data / "policy" / "PLAN").exists()
    assert "OTHER" in say("policy", "list")


@pytest.mark.anyio
@requirement("policy:delete")
async def test_a_policy_is_deleted_whole_and_can_be_added_again(tmp_path: Path) -> None:
    async with open_library(tmp_path / "policy", **PLAIN) as library:
        for source in ("PLAN", "OTHER"):
            await library.add(source)
            for label, start in (("One", "2020-01-01"), ("Two", "2021-01-01")):
                content = plain(f"Homes of {source}.", label)
                await library.revise(source, label, start, content=content)
        answer = await library.admin.delete_policy("PLAN")
        chunks_left = await library.service.store.group_metadata_by_revision()
        hits = await library.service.search(SearchPolicy(query="homes"))
        await library.add("PLAN")
        await library.revise("PLAN", "Again", "2020-01-01", content=plain("Homes again."))
        revisions = await library.service.registry.get_revisions("PLAN")
        diagnosis = await PolicyDoctor(library.service, is_repairing=False).diagnose_policies()

    assert (answer.revisions_removed, answer.chunks_removed) == (2, 4)
    assert {source for source, _ in chunks_left} == {"OTHER"}
    assert {hit.source for hit in hits.results} == {"OTHER"}
    assert [one.version_label for one in revisions] == ["Again"]
    assert diagnosis.complaints == []


@pytest.mark.anyio
@requirement("policy:delete")
async def test_a_policy_is_not_deleted_while_one_of_its_revisions_is_ingested(
    tmp_path: Path,
) -> None:
    async with open_library(tmp_path / "policy", **PLAIN) as library:
        await library.add("PLAN")
        revision_id = await library.revise("PLAN", "One", "2020-01-01", content=plain("Homes."))
        async with library.service.ingestion.progress.enclose_ingestion(revision_id):
            with pytest.raises(RevisionBusy, match="wait until that has ended"):
                await library.admin.delete_policy("PLAN")
        with pytest.raises(PolicyNotFound):
            await library.admin.delete_policy("NONE")
        kept_text = await library.service.search(SearchPolicy(query="homes"))
        unfinished = await library.service.ingestion.list_unfinished()

    assert [hit.text for hit in kept_text.results] == ["Homes."]
    assert unfinished == []


LONG_POLICY = "\n\n".join(
    [
        "## Policy H7: Homes and their gardens",
        *(
            f"Homes keep the character of place {number}, and {REASON.lower()}"
            for number in range(9)
        ),
        "Swift bricks are built into the eaves of every new home, two for each.",
        *(
            f"Roads keep the character of road {number}, and {REASON.lower()}"
            for number in range(9)
        ),
    ]
)


@pytest.mark.anyio
@requirement("policy:references")
async def test_a_named_section_is_shown_where_it_answers_the_rest_of_the_question(
    tmp_path: Path,
) -> None:
    async with open_library(tmp_path / "policy") as library:
        await library.add("PLAN", category="local_plan")
        spool = library.spool(LONG_POLICY.encode())
        await library.admin.revise_policy(
            "PLAN", make_revision("One", "2020-01-01"), spool, no_progress, ".md"
        )

        async def find_first(query: str) -> PolicyHit:
            return (await library.service.search(SearchPolicy(query=query))).results[0]

        bare = await find_first("H7")
        asked = await find_first("does policy H7 require swift bricks in the eaves?")

    assert bare.text.startswith("Policy H7") and "Swift" not in bare.text
    assert "Swift bricks are built" in asked.text
    assert bare.exact_reference and asked.exact_reference


@pytest.mark.anyio
@requirement("policy:formats")
async def test_a_text_comes_back_from_a_backup_as_what_it_is(tmp_path: Path) -> None:
    async with open_library(tmp_path / "old", **PLAIN) as library:
        await library.add("PLAN")
        spool = library.spool(b"# Plan\nNew homes.")
        await library.admin.revise_policy(
            "PLAN", make_revision("One", "2020-01-01"), spool, no_progress, ".md"
        )
        await write_backup(library.service, tmp_path / "backup")
    names = [
        path.relative_to(tmp_path / "backup").as_posix()
        for path in (tmp_path / "backup").rglob("*")
        if path.is_file()
    ]
    assert "files/PLAN/rev_PLAN_2020_01.md" in names
    assert all(BACKUP_FILE_NAME_PATTERN.fullmatch(name) for name in names)

    async with open_library(tmp_path / "new", **PLAIN) as library:
        await restore_backup(library.service, tmp_path / "backup", tmp_path / "new", False)
        restored = await library.admin.get_revision("PLAN", "rev_PLAN_2020_01")
        kept_path = library.service.ingestion.files.locate_file("PLAN", "rev_PLAN_2020_01")
        again = await library.admin.reingest_and_wait("PLAN", "rev_PLAN_2020_01", no_progress)

    assert kept_path.read_bytes() == b"# Plan\nNew homes."
    assert restored.file_path == str(
        tmp_path / "new" / "PLAN" / restored.revision_id / "document.md"
    )
    assert again.chunks_created == 1


class ScanPipeline(PlainPipeline):
    """Reads what `plain` writes as OCR would: with the place of every word, and only once."""

    async def read_document(
        self, private_copy: PrivateCopy, report: Any, *, find_sections: bool
    ) -> Document:
        document = await super().read_document(private_copy, report, find_sections=find_sections)
        words = tuple(
            PageWord(word, column / 20, 0.1, (column + 1) / 20, 0.2)
            for column, word in enumerate(document.text.split())
        )
        return replace(document, pages=(replace(document.pages[0], words=words),))

    async def find_page_words(self, *_: Any) -> tuple[PageWord, ...]:
        raise AssertionError("the words that OCR found are kept")


@pytest.mark.anyio
@requirement("ingest:pictures")
async def test_the_places_of_words_in_a_scanned_plan_are_kept_for_marks(tmp_path: Path) -> None:
    text = "Every home has one brick for swifts"
    async with open_library(tmp_path, **PLAIN | {"pipeline": ScanPipeline()}) as library:
        await library.add("SCANNED")
        revision_id = await library.revise("SCANNED", "One", "2020-01-01", content=plain(text))

        marks = await PolicyPictures(library.service).locate_passage(
            "SCANNED", revision_id, 1, "one brick for swifts"
        )

    (mark,) = marks
    assert (mark.left, mark.right) == (pytest.approx(3 / 20), pytest.approx(7 / 20))
