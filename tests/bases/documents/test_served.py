"""The documents base served by a real process: an application of twelve files, REST, refusals."""

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib import pdfencrypt
from reportlab.pdfgen.canvas import Canvas

from readingroom.bases import BASES
from readingroom.settings import load_settings
from tests.requirements import requirement
from tests.support.documents.base import REF, make_data_with_model
from tests.support.kit import (
    Served,
    clean_environment,
    connect_http,
    connect_sse,
    read_body,
    run,
    serve_room,
)
from tests.support.papers import HEIGHT, WIDTH, Paper, encode_image, make_paper

pytestmark = pytest.mark.both_engines("full")

WORDS = (
    "The flood risk of the site was assessed against the map of the agency and is low. "
    "Surface water is held in ponds and leaves the site no faster than it does today. "
    "A drain under the road is cleaned twice a year by the company that looks after the homes."
)
SPEC_TOOLS = {
    *("ingest_document", "search_application_docs", "get_document_text"),
    "list_ingested_documents",
}


def make_scan(text: str = WORDS) -> Image.Image:
    """A page of words as a scanner sees it, 150 dots to the inch."""
    page = Image.new("L", (1240, 1754), "white")
    font = ImageFont.load_default(30)
    words, lines = text.split(), [""]
    for word in words:
        lines[-1] += f" {word}"
        if len(lines[-1]) > 55:
            lines.append("")
    ImageDraw.Draw(page).multiline_text((120, 150), "\n".join(lines), "black", font, spacing=18)
    return page


def draw_plan() -> Image.Image:
    """A plan: lines, and not a word."""
    page = Image.new("L", (1240, 1754), "white")
    pen = ImageDraw.Draw(page)
    for step in range(60, 800, 90):
        pen.rectangle((step, step, 1240 - step // 2, 1754 - step), outline="black", width=4)
    return page


def make_pdf_of_pictures(*pictures: Image.Image | str) -> bytes:
    """A PDF whose pages are pictures, or texts."""
    made = Paper()
    for place, picture in enumerate(pictures):
        if place:
            made.turn()
        if isinstance(picture, str):
            made.write(picture)
        else:
            made.picture(picture, (0, 0, WIDTH, HEIGHT))
    return made.done()


def make_encrypted_pdf() -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, encrypt=pdfencrypt.StandardEncryption("secret", "owner"))
    canvas.drawString(72, 700, "Nobody may read this.")
    canvas.save()
    return file.getvalue()


def make_twelve_files() -> dict[str, bytes]:
    """An application: text, scans, mixed, drawings, renders, other formats, and two bad files."""
    return {
        "Transport_Assessment.pdf": make_paper("Cycle parking is covered.", "Trips were counted."),
        "Planning Statement.pdf": make_paper(
            *["The principle of development is accepted. " * 30] * 3
        ),
        "Flood Risk Assessment.pdf": make_pdf_of_pictures(make_scan()),
        "Bat survey.pdf": make_pdf_of_pictures(
            "Bats roost in the barn, and were seen at dusk.", make_scan()
        ),
        "Proposed Site Plan.pdf": make_pdf_of_pictures(draw_plan(), draw_plan()),
        "CGI view from the road.pdf": make_pdf_of_pictures(draw_plan()),
        "Artists impression.png": encode_image(draw_plan(), "PNG"),
        "Letter.tiff": encode_image(
            make_scan(), "TIFF", save_all=True, append_images=[make_scan()]
        ),
        "Notice.bmp": encode_image(make_scan(), "BMP"),
        "Heritage Statement.jpg": encode_image(make_scan(), "JPEG"),
        "Locked.pdf": make_encrypted_pdf(),
        "Broken.pdf": b"%PDF-1.7\n1 0 obj\n<< /Type /Cat",
    }


EXPECTED: dict[str, tuple[str, str]] = {
    "Transport_Assessment.pdf": ("success", "text_layer"),
    "Planning Statement.pdf": ("success", "text_layer"),
    "Flood Risk Assessment.pdf": ("success", "ocr"),
    "Bat survey.pdf": ("success", "mixed"),
    "Proposed Site Plan.pdf": ("skipped", "image_based"),
    "CGI view from the road.pdf": ("skipped", "image_based"),
    "Artists impression.png": ("skipped", "image_based"),
    "Letter.tiff": ("success", "ocr"),
    "Notice.bmp": ("success", "ocr"),
    "Heritage Statement.jpg": ("success", "ocr"),
    "Locked.pdf": ("error", "extraction_failed"),
    "Broken.pdf": ("error", "extraction_failed"),
}


@pytest.fixture(scope="module")
def served(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`readingroom serve documents`, its inbox holding the application in a folder of its own."""
    data = tmp_path_factory.mktemp("data")
    inbox = make_data_with_model(data)
    (inbox / "application").mkdir()
    for name, content in make_twelve_files().items():
        (inbox / "application" / name).write_bytes(content)
    with serve_room("documents", data=data) as served:
        yield served


@pytest.fixture(scope="module")
def inbox(served: Served) -> Path:
    return served.data / "documents" / "inbox"


@pytest.fixture(scope="module")
def ingested(served: Served, inbox: Path) -> dict[str, Any]:
    """The whole application, through REST's mirror of ingest_folder."""
    answer = ask(
        served,
        "POST",
        "/documents/ingest-folder",
        json={"path": str(inbox / "application"), "application_ref": REF},
    )
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def open_http_client(served: Served) -> httpx2.Client:
    return httpx2.Client(base_url=f"{served.url}/api/v1", timeout=300, trust_env=False)


def ask(served: Served, method: str, path: str, **sent: Any) -> httpx2.Response:
    with open_http_client(served) as client:
        return client.request(method, path, **sent)


def read_status_and_code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


# --- an application ---


@requirement("documents:folder", "documents:ingest:formats", "documents:method")
def test_an_application_of_twelve_files_has_the_right_outcome_for_each(
    ingested: dict[str, Any],
) -> None:
    outcomes = {
        one["file"]: (
            one["status"],
            one["extraction_method"] or one["reason"] or one["error_type"],
        )
        for one in ingested["files"]
    }
    assert outcomes == EXPECTED
    counts = [ingested[name] for name in ("file_count", "ingested", "skipped", "failed")]
    assert counts == [12, 7, 3, 2]


@requirement("documents:overview", "documents:application")
def test_an_overview_shows_documents_by_type_and_what_is_missing(
    served: Served, ingested: dict[str, Any]
) -> None:
    given = {"address": "1 High Street", "validation_date": "2025-03-15"}
    reference = {"reference": REF}
    assert ask(served, "PATCH", "/applications", params=reference, json=given).status_code == 200
    kept = ask(served, "PATCH", "/applications", params=reference, json={"status": "validated"})
    assert kept.json()["application"] | {"updated_at": None} == {
        "reference": REF,
        "address": "1 High Street",
        "description": None,
        "validation_date": "2025-03-15",
        "status": "validated",
        "local_authority": None,
        "updated_at": None,
    }
    overview = ask(served, "GET", "/applications", params=reference).json()
    assert overview["application"] == kept.json()["application"]
    assert overview["document_count"] == 7
    types = {one["document_type"]: one["document_count"] for one in overview["types"]}
    assert types == {
        "ecology_report": 1,
        "flood_risk_assessment": 1,
        "heritage_statement": 1,
        "planning_statement": 1,
        "transport_assessment": 1,
        "other": 2,
    }
    assert overview["page_count"] == 2 + 3 + 1 + 2 + 2 + 1 + 1
    unread = {one["source_file"]: one["reason"] for one in overview["not_ingested"]}
    assert unread == {
        name: told for name, (status, told) in EXPECTED.items() if status in ("skipped", "error")
    }
    # The site plan was there, though nothing could be read in it.
    assert overview["missing_types"] == [
        "arboricultural_report",
        "design_access_statement",
        "elevation",
        "environmental_statement",
        "floor_plan",
        "noise_assessment",
    ]
    listed = ask(served, "GET", "/applications").json()["applications"]
    assert {"reference": REF, "document_count": 7, "validation_date": "2025-03-15"} in listed
    wrong = ask(
        served, "PATCH", "/applications", params=reference, json={"validation_date": "soon"}
    )
    assert read_status_and_code(wrong) == (422, "invalid_date")
    nobody = ask(served, "GET", "/applications", params={"reference": "9/9/9"})
    assert read_status_and_code(nobody) == (404, "application_not_found")


# --- the tools ---


@requirement("documents:tools", "documents:transport", "documents:search:shape")
@pytest.mark.anyio
async def test_the_tools_answer_over_both_transports(
    served: Served, ingested: dict[str, Any]
) -> None:
    asked = {"query": "cycle parking", "application_ref": REF, "max_results": 3}
    async with connect_http(f"{served.url}/mcp") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        by_http = read_body(await client.call_tool("search_application_docs", asked))
    async with connect_sse(f"{served.url}/sse") as client:
        assert client.server_info.name == "document-store-mcp"
        by_sse = read_body(await client.call_tool("search_application_docs", asked))
    by_rest = ask(served, "GET", "/documents/search", params=asked).json()
    assert tools.keys() == SPEC_TOOLS | {
        *("application_overview", "ingest_folder", "remove_document", "set_application"),
    }
    assert by_http == by_sse == by_rest
    assert by_http["results"][0]["citation"].startswith("Transport_Assessment.pdf, p. 1")
    assert served.get("/health").json() == {"status": "ok"}


@requirement(
    "documents:ingest:success",
    "documents:ingest:idempotent",
    "documents:ingest:skipped",
    "documents:ingest:errors",
    "documents:type:other",
)
@pytest.mark.anyio
async def test_every_kind_of_answer_of_an_ingest(served: Served, inbox: Path) -> None:
    files = {
        "Noise report.pdf": make_paper("The road is loud by day and quiet by night."),
        "Render.pdf": make_pdf_of_pictures(draw_plan()),
        "blank.pdf": make_paper(""),
        "broken.pdf": b"%PDF-1.7\n1 0 obj",
        "slides.pptx": b"PK\x03\x04",
        "page.pdf": b"<html>not found</html>",
    }
    for name, content in files.items():
        (inbox / name).write_bytes(content)
    steps: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append(done)

    async with connect_http(f"{served.url}/mcp") as client:

        async def ingest(name: str, **more: Any) -> Any:
            asked = {"file_path": str(inbox / name), "application_ref": "26/7/FUL", **more}
            result = await client.call_tool("ingest_document", asked, progress_callback=progress)
            told = read_body(result)
            assert result.is_error == (told["status"] == "error")
            return told

        first = await ingest("Noise report.pdf")
        again = await ingest("Noise report.pdf")
        skipped = await ingest("Render.pdf")
        errors = {
            name: (await ingest(name))["error_type"]
            for name in ("blank.pdf", "broken.pdf", "slides.pptx", "page.pdf", "nobody.pdf")
        }
        unknown = await ingest("Noise report.pdf", document_type="poem")
    assert first.keys() == {
        *("status", "document_id", "chunks_created", "extraction_method", "contains_drawings"),
        *("total_chars", "total_words", "document_kind", "page_count"),
        *("pages_without_text",),
        *("pages_without_text_reason", "contained_files"),
    }
    assert (first["total_words"], first["contains_drawings"]) == (10, False)
    assert again == {
        "status": "already_ingested",
        "document_id": first["document_id"],
        "message": "Document has already been ingested with the same content",
        "same_as": "Noise report.pdf",
        "contained_files": [],
    }
    assert skipped.keys() == {"status", "reason", "image_ratio", "total_pages"}
    assert (skipped["reason"], skipped["total_pages"]) == ("image_based", 1)
    assert errors == {
        "blank.pdf": "no_content",
        "broken.pdf": "extraction_failed",
        "slides.pptx": "unsupported_file_type",
        "page.pdf": "extraction_failed",
        "nobody.pdf": "file_not_found",
    }
    assert unknown["error_type"] == "invalid_arguments"
    assert "transport_assessment" in unknown["message"]
    assert 50 in steps and 95 in steps  # read, embedded


@requirement("documents:paths", "room:roots")
@pytest.mark.anyio
async def test_paths_that_lead_out_are_refused_and_nothing_is_read(
    served: Served, inbox: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.pdf"
    outside.write_bytes(make_paper("secret"))
    (inbox / "link.pdf").symlink_to(outside)
    (inbox / "folder-link").symlink_to(tmp_path)
    os.mkfifo(inbox / "pipe.pdf")
    paths = [
        str(outside),
        str(inbox / "link.pdf"),
        str(inbox / "folder-link" / "outside.pdf"),
        f"{inbox}/../../../../outside.pdf",
        str(inbox / "pipe.pdf"),
        "/proc/self/environ",
        "/etc/passwd",
        str(inbox),
        "outside.pdf",
        f"{inbox}/a\0b.pdf",
    ]
    async with connect_http(f"{served.url}/mcp") as client:
        for path in paths:
            asked = {"file_path": path, "application_ref": "26/8/FUL"}
            result = await client.call_tool("ingest_document", asked)
            assert read_body(result)["error_type"] == "file_not_found", path
        for path in (str(tmp_path), "/proc/self", f"{inbox}/folder-link", f"{inbox}/.."):
            asked = {"path": path, "application_ref": "26/8/FUL"}
            result = await client.call_tool("ingest_folder", asked)
            assert read_body(result)["error_type"] == "file_not_found", path
        listed = await client.call_tool("list_ingested_documents", {"application_ref": "26/8/FUL"})
    assert read_body(listed)["documents"] == []
    for name in ("link.pdf", "folder-link", "pipe.pdf"):
        (inbox / name).unlink()


# --- REST ---


@requirement("documents:rest", "documents:page-image", "documents:remove")
def test_a_file_is_uploaded_read_shown_and_removed(served: Served) -> None:
    pages = make_paper("A first page about oaks.", "A second page about elms.")
    with open_http_client(served) as client:
        sent = client.post(
            "/documents",
            params={"application_ref": "26/9/FUL", "document_type": "arboricultural_report"},
            files={"file": ("../../Trees.pdf", pages, "application/pdf")},
        )
        assert sent.status_code == 200, sent.text
        document = sent.json()["document_id"]
        listed = client.get("/documents", params={"application_ref": "26/9/FUL"}).json()
        one = client.get(f"/documents/{document}").json()
        text = client.get(f"/documents/{document}/text", params={"pages": "2"}).json()
        picture = client.get(f"/documents/{document}/pages/2.png", params={"dpi": 72})
        missing = client.get(f"/documents/{document}/pages/3.png")
        webp = client.get(f"/documents/{document}/pages/2.webp", params={"dpi": 72})
        passage = {"passage": "second page about elms"}
        marks = client.get(f"/documents/{document}/pages/2/marks", params=passage).json()["marks"]
        elsewhere = client.get(f"/documents/{document}/pages/1/marks", params=passage).json()
        kept = sorted(path.name for path in (served.data / "documents" / "pages").glob("*/*"))
        gone = client.delete(f"/documents/{document}").json()
        after = client.get(f"/documents/{document}")
        uploads = [path.name for path in (served.data / "documents" / "uploads").iterdir()]
    assert listed["documents"] == [one]
    assert (one["document_type"], Path(one["file_path"]).name) == (
        "arboricultural_report",
        "Trees.pdf",
    )
    assert text["text"] == "A second page about elms."
    assert text["citation"] == "Trees.pdf, p. 2"
    assert picture.headers["content-type"] == "image/png"
    with Image.open(io.BytesIO(picture.content)) as shown:
        assert (shown.format, shown.size) == ("PNG", (596, 842))
    assert read_status_and_code(missing) == (404, "page_not_found")
    with Image.open(io.BytesIO(webp.content)) as shown:
        assert (shown.format, shown.size) == ("WEBP", (596, 842))
    (mark,) = marks
    assert 0 < mark["left"] < mark["right"] < 1 and 0 < mark["top"] < mark["bottom"] < 1
    assert elsewhere["marks"] == []
    assert {"2@72.webp", "2.json", "1.json"} <= set(kept)
    assert not any((served.data / "documents" / "pages").glob("*/2@72.webp"))
    assert gone["chunks_removed"] >= 1
    assert read_status_and_code(after) == (404, "document_not_found")
    assert uploads == []


@requirement("documents:rest")
def test_rest_refuses_what_does_not_fit(served: Served) -> None:
    with open_http_client(served) as client:
        ref = {"application_ref": "26/9/FUL"}
        assert read_status_and_code(client.get("/documents")) == (422, "validation_error")
        assert read_status_and_code(client.post("/documents", params=ref)) == (
            422,
            "validation_error",
        )
        slides = client.post("/documents", params=ref, files={"file": ("a.pptx", b"PK")})
        assert read_status_and_code(slides) == (422, "unsupported_file_type")
        search = client.get("/documents/search", params={"query": "x", "document_types": "poem"})
        assert read_status_and_code(search) == (422, "validation_error")
        for name, value in (("application", REF), ("n_results", "abc")):
            unknown = client.get("/documents/search", params={"query": "x", name: value})
            assert read_status_and_code(unknown) == (422, "validation_error")
            assert unknown.json()["error"]["hint"]["errors"][0]["field"] == name
        outside = client.post("/documents/ingest", json={**ref, "file_path": "/etc/passwd"})
        assert read_status_and_code(outside) == (404, "file_not_found")
        for page in ("0", "x", "99"):
            told = client.get(f"/documents/25_1_a1b2c3/pages/{page}.png")
            assert told.status_code in (404, 422)


@requirement("documents:rest")
def test_the_openapi_page_names_every_route_and_read_only_leaves_out_those_that_write(
    served: Served, tmp_path: Path
) -> None:
    paths = served.get("/openapi.json").json()["paths"]
    assert {path: sorted(of) for path, of in paths.items() if path.startswith("/api/")} == {
        "/api/v1/applications": ["get", "patch"],
        "/api/v1/documents": ["get", "post"],
        "/api/v1/documents/ingest": ["post"],
        "/api/v1/documents/ingest-folder": ["post"],
        "/api/v1/documents/search": ["get"],
        "/api/v1/documents/{document_id}": ["delete", "get"],
        "/api/v1/documents/{document_id}/pages/{page}.png": ["get"],
        "/api/v1/documents/{document_id}/pages/{page}.webp": ["get"],
        "/api/v1/documents/{document_id}/pages/{page}/marks": ["get"],
        "/api/v1/documents/{document_id}/text": ["get"],
    }
    # The other routes are those of workers, which embed for any base.
    assert {path.split("/")[1] for path in paths} == {"api", "embedding"}
    with serve_room("documents", "--read-only", data=tmp_path / "data") as reading:
        paths = reading.get("/openapi.json").json()["paths"]
        assert all(list(of) == ["get"] for of in paths.values())


# --- the shell ---


def run_json(data: Path, *args: str, status: int = 0) -> Any:
    ended = run(*args, "--data", str(data), "--json")
    assert ended.returncode == status, ended.stderr
    return json.loads(ended.stdout)


@requirement("documents:folder", "documents:remove", "documents:application", "documents:doctor")
def test_the_shell_ingests_a_folder_also_through_a_running_server(
    served: Served, tmp_path: Path
) -> None:
    folder = tmp_path / "papers"
    (folder / "below").mkdir(parents=True)
    (folder / "Noise report.pdf").write_bytes(make_paper("A quiet street with a loud bakery."))
    (folder / "below" / "Tree survey.pdf").write_bytes(make_paper("An oak of great age."))
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7")
    ref = "26/10/FUL"
    ingested = run_json(
        served.data, "documents", "ingest", str(folder), "--application", ref, status=1
    )
    outcomes = {one["file"]: one["status"] for one in ingested["files"]}
    assert outcomes == {
        "Noise report.pdf": "success",
        "below/Tree survey.pdf": "success",
        "broken.pdf": "error",
    }
    absent, quiet = str(folder / "absent.pdf"), str(folder / "Noise report.pdf")
    again = run_json(
        served.data, "documents", "ingest", absent, quiet, "--application", ref, status=1
    )
    assert (again["file_count"], again["already_ingested"], again["failed"]) == (2, 1, 1)
    assert again["files"][-1]["error_type"] == "file_not_found"
    listed = run_json(served.data, "documents", "list", "--application", ref)
    assert listed["document_count"] == 2
    found = run_json(served.data, "documents", "search", "oak", "--application", ref)
    document = found["results"][0]["metadata"]["document_id"]
    text = run("documents", "text", document, "--data", str(served.data), anew=True)
    assert text.stdout == "An oak of great age.\n"
    shown = run_json(served.data, "documents", "application", ref, "--validated", "2026-01-02")
    assert shown["application"]["validation_date"] == "2026-01-02"
    shown = run_json(served.data, "documents", "application", ref, "--status", "changed")
    kept = (shown["application"]["status"], shown["application"]["validation_date"])
    assert kept == ("changed", "2026-01-02")
    shown = run_json(served.data, "documents", "application", ref, "--validated", "")
    assert shown["application"]["validation_date"] is None
    assert run_json(served.data, "documents", "remove", document)["chunks_removed"] == 1
    table = run(
        "documents", *("ingest", str(folder), "--application", ref, "--data", str(served.data))
    )
    assert "3 files: 1 ingested, 1 were there, 0 skipped, 1 failed" in table.stdout
    assert list((served.data / "documents" / "handover").iterdir()) == []
    doctor = run("doctor", "--data", str(served.data), "--json")
    assert [one for one in json.loads(doctor.stdout)["complaints"] if "26_" in one["subject"]] == []


# --- settings ---


@requirement("documents:config", "documents:transport")
def test_the_contracts_variables_and_their_defaults(tmp_path: Path) -> None:
    plain = load_settings({"data": tmp_path}, {})
    assert BASES["documents"].get_default_port(plain) == BASES["documents"].port == 3002
    assert (plain.enable_ocr, plain.image_ratio_threshold, plain.api_key) == (True, 0.7, None)
    assert plain.chroma_persist_dir is None
    variables = {
        "DOCUMENT_STORE_PORT": "4002",
        "CHROMA_PERSIST_DIR": "",
        "ENABLE_OCR": "false",
        "IMAGE_RATIO_THRESHOLD": "0.5",
        "MCP_API_KEY": "",
    }
    chosen = load_settings({"data": tmp_path}, variables)
    assert BASES["documents"].get_default_port(chosen) == 4002
    assert (chosen.enable_ocr, chosen.image_ratio_threshold, chosen.api_key) == (False, 0.5, None)
    assert chosen.chroma_persist_dir == ""


@pytest.mark.embedded_only("the database keeps the chunks, and Chroma nothing")
@requirement("documents:config", "documents:store", "documents:transport")
def test_chroma_lies_where_it_is_told_or_in_memory(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    env = {"CHROMA_PERSIST_DIR": str(elsewhere), "MCP_API_KEY": "sesame"}
    with serve_room("documents", data=tmp_path / "one", env=env) as served:
        assert served.get("/api/v1/applications").status_code == 401
        authorised = served.get("/api/v1/applications", Authorization="Bearer sesame")
        assert authorised.json()["application_count"] == 0
    assert (elsewhere / "chroma.sqlite3").exists()
    with serve_room("documents", data=tmp_path / "two", env={"CHROMA_PERSIST_DIR": ""}) as served:
        assert served.get("/api/v1/applications").json()["application_count"] == 0
    assert sorted(path.name for path in (tmp_path / "two" / "documents").iterdir()) == ["lock"]
    assert "CHROMA_PERSIST_DIR" not in clean_environment()
