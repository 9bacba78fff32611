"""What people come for: a page with its passage marked, a quotation checked, files sent, roles."""

import datetime as dt
import re
import socket
from pathlib import Path

import httpx2
import pytest
from PIL import Image
from playwright.async_api import Browser, Page

from readingroom.storage.jobs.store import JobStore
from readingroom.storage.keys import KeyRing
from tests.requirements import requirement
from tests.support.browser import open_page
from tests.support.kit import HANG_SECONDS, Served, serve_room
from tests.support.papers import encode_image, make_paper
from tests.support.processes import wait_until

pytestmark = pytest.mark.anyio

REFERENCE = "26/00001/FUL"
MIXED_REFERENCE = "26/00013/OUT"
HOSTILE = '"><img src=x onerror=alert(1)>'


# --- the sample ---


@requirement("room:console")
@pytest.mark.parametrize("has_script", [True, False])
async def test_a_policy_is_found_on_its_timeline_compared_and_read_on_its_page(
    browser: Browser, sample_room: Served, has_script: bool
) -> None:
    async with open_page(browser, sample_room.url, java_script_enabled=has_script) as watched:
        page = watched.page
        await watched.open("/policies?date=2025-03-15")
        await page.get_by_role("link", name="National Planning Policy Framework").first.click()
        await page.get_by_role("button", name="Compare").click()
        await page.wait_for_url("**/compare?*")
        assert await page.locator("ins").count() > 0
        await watched.open("/read?id=policy:NPPF@rev_NPPF_2024_12%23Chapter%209")
        picture = page.locator(".sheet img")
        assert await picture.count() == 1
        if has_script:  # else nothing can be asked of it
            assert await picture.evaluate("image => image.complete && image.naturalWidth > 0")
        assert await page.locator(".sheet rect").count() >= 2
        await page.locator("a[rel=next]").click()
        await page.wait_for_url(lambda address: "Chapter%209" not in address)
        assert watched.messages == [] and watched.foreign == []


@requirement("room:console")
@pytest.mark.parametrize(
    ("quotation", "day", "verdict"),
    [
        ("in every reasonable future scenario that has been tested", "2025-03-15", "Verified"),
        (
            "in every reasonable future scenario that has been tested",
            "2024-03-15",
            "Wrong revision",
        ),
        ("Bicycles are forbidden everywhere", "2025-03-15", "Not found"),
    ],
)
@pytest.mark.parametrize("has_script", [True, False])
async def test_a_quotation_is_checked_for_a_day(
    browser: Browser,
    sample_room: Served,
    quotation: str,
    day: str,
    verdict: str,
    has_script: bool,
) -> None:
    async with open_page(browser, sample_room.url, java_script_enabled=has_script) as watched:
        page = watched.page
        await watched.open("/policies/check")
        await page.get_by_label("Policy", exact=True).select_option("NPPF")
        await page.get_by_label("The words as they were quoted").fill(quotation)
        await page.get_by_label("Cited for the day").fill(day)
        await page.get_by_role("button", name="Check").click()
        await page.locator("#verdict").wait_for()
        assert verdict in await page.locator("#verdict").inner_text()
        found = page.get_by_role("table", name="Where the words stand")
        if verdict == "Not found":
            assert await found.count() == 0
        else:
            # Every revision over time, and the words on their page.
            caption = await page.locator("figcaption").inner_text()
            assert "The words stand in 1 of 2 revisions" in caption
            assert await page.locator("rect.span.active").count() == 1
            assert await page.locator("rect.span.superseded").count() == 1
            assert await page.locator(".sheet rect").count() >= 1
        if verdict == "Verified":
            await found.get_by_role("link").first.click()
            await page.wait_for_url("**/read?*")
            assert await page.locator(".sheet rect").count() >= 1
            assert quotation in await page.locator("mark").first.inner_text()


@requirement("room:console")
async def test_a_search_says_what_it_did_not_ask_and_why(
    browser: Browser, sample_room: Served
) -> None:
    async with open_page(browser, sample_room.url) as watched:
        await watched.open("/search?q=cycle+parking&date=2005-01-01&base=policy")
        unasked = watched.page.locator("h2:has-text('Not asked') + ul li")
        assert await unasked.count() >= 6
        assert await unasked.locator("rect.bar").count() >= 6
        assert (
            "the first revision that was read here came later" in await unasked.first.inner_text()
        )
        await watched.open("/search?q=cycle+parking+for+homes&date=2025-03-15&base=policy")
        assert await watched.page.locator(".scores").count() > 0
        # When each was in force, on one scale, and its place by meaning and by words.
        assert await watched.page.locator(".hits .meta rect.bar").count() >= 5
        assert re.search(
            r"words\s+[0-9.]+ \(\d+(st|nd|rd|th)\)", await watched.page.inner_text("main")
        )
        # A heading alone answers nothing.
        for passage in (await watched.page.locator(".hits .passage").all_inner_texts())[:5]:
            assert len(passage.split()) > 8, passage
        together = await watched.page.locator(".scores").all_inner_texts()
        scores = [float(re.findall(r"together ([0-9.]+)", score)[0]) for score in together]
        assert scores == sorted(scores, reverse=True)


@requirement("room:console")
@pytest.mark.parametrize("has_script", [True, False])
async def test_a_list_is_narrowed_by_a_bar_and_a_vote_sums_to_its_totals(
    browser: Browser, sample_room: Served, has_script: bool
) -> None:
    async with open_page(browser, sample_room.url, java_script_enabled=has_script) as watched:
        page = watched.page
        # A year of months: each bar is one of them.
        await watched.open("/records/bills?since=2024-01-01&until=2024-12-31")
        bar = page.locator(".chart svg a").first
        name = await bar.get_attribute("aria-label")
        assert name is not None and re.match(r"2024-\d\d: \d+$", name)
        await bar.click()
        await page.wait_for_url(lambda address: "since=2024-01-01&until=2024-12-31" not in address)
        rows = page.locator("h2:has-text('Records') + div tbody tr")
        assert await rows.count() == int(name.rpartition(": ")[2])
        # The bars of a month are its days.
        bars = await page.locator(".chart svg a").evaluate_all(
            "all => all.map(one => one.getAttribute('aria-label'))"
        )
        assert all(re.match(r"2024-\d\d-\d\d: \d+$", bar) for bar in bars)
        assert sum(int(bar.rpartition(": ")[2]) for bar in bars) == await rows.count()
        for vote_id in ("senate:119:2:9902", "house:117:1:9802"):
            await watched.open(f"/records/view?id={vote_id}")
            facts = await page.locator("dl.facts dd").all_inner_texts()
            assert facts[0] == facts[1]
        assert await page.locator("tbody tr").count() >= 100
        await watched.open("/records/links?id=hr:119:99001")
        rows = await page.locator("tbody tr").all()
        assert len(rows) > 5
        for row in rows:
            assert (await row.locator("td").nth(2).inner_text()).strip()


@requirement("room:console")
def test_every_page_gives_the_same_as_json(sample_room: Served) -> None:
    for path in (
        "/policies",
        "/policies/NPPF",
        "/applications/view?ref=25/01178/REM",
        "/search?q=cycle+parking",
        "/records/bills",
        "/records/view?id=hr:119:99001",
    ):
        page = sample_room.get(path, Accept="text/html").text
        (address,) = re.findall(r'<a href="([^"]*)">As JSON</a>', page)
        answer = sample_room.get(address.replace("&amp;", "&"))
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["_meta"] == {"sample": True}


@requirement("room:console")
def test_the_home_page_says_what_happened_and_the_list_of_applications_is_sorted(
    sample_room: Served,
) -> None:
    home = sample_room.get("/", Accept="text/html").text
    events = re.findall(r'<li><b>([^<]+)</b> <a href="([^"]+)">', home)
    assert any(address.startswith("/policies/") for _, address in events)
    assert any(address.startswith("/applications/") for _, address in events)
    days = [dt.datetime.strptime(f"{day} +0000", "%d %B %Y %z") for day, _ in events]
    assert days == sorted(days, reverse=True)
    for order, column in (("validated", 3), ("documents", 4), ("reference", 0)):
        page = sample_room.get(f"/applications?sort={order}", Accept="text/html").text
        rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in page.split("<tr>")[2:]]
        assert len(rows) >= 2 and page.count("aria-sort=") == 1
        values = [re.sub("<[^>]+>", "", row[column]) for row in rows]
        if order == "documents":
            assert list(map(int, values)) == sorted(map(int, values), reverse=True)
        elif order == "reference":
            assert values == sorted(values)


# --- files ---


@requirement("room:console", "room:jobs")
@pytest.mark.parametrize("has_script", [True, False])
async def test_files_are_sent_read_and_shown_with_the_outcome_of_each(
    browser: Browser, own_room: Served, tmp_path: Path, has_script: bool
) -> None:
    good, hostile = (
        tmp_path / "Planning_Statement.pdf",
        tmp_path / f"{HOSTILE}.pdf".replace("/", ""),
    )
    unreadable = tmp_path / "broken.pdf"
    words = "with script" if has_script else "without"
    good.write_bytes(make_paper(f"Bicycles are parked under cover, {words}."))
    hostile.write_bytes(make_paper(f"Oaks stand at the gate, {words}."))
    unreadable.write_bytes(b"%PDF-1.4 nothing")
    async with open_page(browser, own_room.url, java_script_enabled=has_script) as watched:
        page = watched.page
        await watched.open("/applications")
        await page.get_by_label("Application", exact=True).fill(REFERENCE)
        await page.get_by_label("Files").set_input_files([good, hostile, unreadable])
        await page.get_by_role("button", name="Send").click()
        await page.wait_for_url("**/jobs/*")
        if has_script:
            await page.get_by_text("Done.").wait_for()
        else:
            path = page.url.removeprefix(own_room.url)
            wait_until(lambda: JobStore(own_room.data).get_job(path.rpartition("/")[2]).has_ended)
            await watched.open(path)
        outcomes = await page.locator("tbody tr").all_inner_texts()
        assert [row.split("\t")[1] for row in outcomes] == ["read", "read", "failed"]
        await page.get_by_role("link", name=f"Application {REFERENCE}").click()
        await page.wait_for_url("**/applications/view?*")
        assert "<img src=x" in await page.locator("main").inner_text()
        assert await page.locator("main img").count() == 0
        if has_script:
            assert await watched.list_violations() == []
            assert watched.messages == []


STATEMENT = make_paper("The proposal is for 47 homes.", "Page two.")
MIXED_FILES: dict[str, tuple[bytes, str]] = {
    "Planning_Statement.pdf": (STATEMENT, "read"),
    "Design_and_Access_Statement.pdf": (make_paper("The homes face south."), "read"),
    "Transport_Assessment.pdf": (make_paper("There are 94 cycle spaces."), "read"),
    "Flood_Risk_Assessment.pdf": (make_paper("The site is in flood zone 1."), "read"),
    "Heritage_Statement.txt": (b"The barn was listed in 1984.", "read"),
    "Noise_Assessment.md": (b"# Noise\n\nThe road is heard at night.", "read"),
    "Ecological_Appraisal.html": (b"<h1>Bats</h1><p>No bats roost in the barn.</p>", "read"),
    "Consultation.csv": (b"who,what\nParish,No objection\n", "read"),
    "Objection.eml": (
        b"From: a@example.org\r\nSubject: Objection\r\n\r\nThe road is narrow.\r\n",
        "read",
    ),
    "Site_Plan.png": (encode_image(Image.new("RGB", (600, 400), "white"), "PNG"), "skipped"),
    "Copy_of_the_Statement.pdf": (STATEMENT, "already there"),
    "Broken.pdf": (b"%PDF-1.4 nothing", "failed"),
    "Program.exe": (b"MZ\x90\x00\x03" + bytes(200), "failed"),
}


@requirement("room:console", "room:jobs")
async def test_thirteen_files_of_all_sorts_each_have_their_outcome_and_their_place(
    browser: Browser, own_room: Served, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in MIXED_FILES]
    for file in files:
        file.write_bytes(MIXED_FILES[file.name][0])
    async with open_page(browser, own_room.url) as watched:
        page = watched.page
        await watched.open("/applications")
        await page.get_by_label("Application", exact=True).fill(MIXED_REFERENCE)
        await page.get_by_label("Files").set_input_files(files)
        await page.get_by_role("button", name="Send").click()
        await page.wait_for_url("**/jobs/*")
        await page.get_by_text("Done.").wait_for()
        rows = [row.split("\t") for row in await page.locator("tbody tr").all_inner_texts()]
        outcomes = {row[0]: row[1] for row in rows}
        assert list(outcomes) == list(MIXED_FILES)
        for name, (_, outcome) in MIXED_FILES.items():
            assert outcomes[name].startswith(outcome), (name, rows)
        # Whatever was not read says why.
        assert all(row[2].strip() for row in rows if row[1] != "read")
        await page.get_by_role("link", name=f"Application {MIXED_REFERENCE}").click()
        await page.wait_for_url("**/applications/view?*")
        kinds = dict(
            await page.locator(".kinds li").evaluate_all(
                "all => all.map(one => [one.querySelector('h3').textContent,"
                " one.querySelector('.tag').textContent])"
            )
        )
        assert kinds["Transport assessment"] == kinds["Planning statement"] == "there"
        assert kinds["Site plan"] == "unread" and kinds["Floor plan"] == "missing"
        unread = page.locator("h2:has-text('Not read') + div tbody tr")
        assert {"Site_Plan.png"} <= set(await unread.locator("td:first-child").all_inner_texts())
        for reason in await unread.locator("td:last-child").all_inner_texts():
            assert len(reason.split()) > 2, reason
        assert await watched.list_violations() == []
        # The pages of a document are pictures, one after the other.
        await page.get_by_role("link", name="Planning_Statement.pdf", exact=True).click()
        await page.wait_for_url("**/read?*")
        for expected in ("Page 1 of", "Page 2 of"):
            picture = page.get_by_role("img", name=expected)
            await picture.wait_for()
            assert await picture.evaluate("image => image.decode().then(() => true)")
            if expected == "Page 1 of":
                await page.locator("a[rel=next]").click()
        # Removing one asks once more, and says what goes with it.
        await watched.open(f"/applications/view?ref={MIXED_REFERENCE}")
        await page.get_by_role("link", name="Remove Planning_Statement.pdf").click()
        assert "passage" in await page.locator("main").inner_text()
        await page.get_by_role("button", name="Remove").click()
        await page.wait_for_url("**/applications/view?*")
        assert await page.get_by_role("link", name="Remove Planning_Statement.pdf").count() == 0
        assert watched.messages == [] and watched.foreign == []


@requirement("room:console", "room:jobs")
@pytest.mark.parametrize("has_script", [True, False])
async def test_files_for_no_application_are_refused_beside_the_field(
    browser: Browser, own_room: Served, tmp_path: Path, has_script: bool
) -> None:
    file = tmp_path / "Statement.pdf"
    file.write_bytes(STATEMENT)
    async with open_page(browser, own_room.url, java_script_enabled=has_script) as watched:
        page = watched.page
        await watched.open("/applications")
        await page.get_by_label("Application", exact=True).fill("   ")
        await page.get_by_label("Files").set_input_files(file)
        await page.get_by_role("button", name="Send").click()
        await page.get_by_role("alert").wait_for()
        assert await page.locator("#application_ref-error").count() == 1
        # The files can be chosen again where they were.
        assert await page.get_by_label("Files").is_visible()


@requirement("room:jobs")
def test_what_a_killed_server_had_taken_is_read_and_what_it_was_receiving_is_swept(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with serve_room("documents", data=data) as killed:
        host, port = killed.url.removeprefix("http://").split(":")
        head = (
            f"POST /applications/add HTTP/1.1\r\nHost: {host}:{port}\r\nOrigin: {killed.url}\r\n"
            "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000000\r\n\r\n"
            '--x\r\nContent-Disposition: form-data; name="files"; filename="a.pdf"\r\n\r\n'
        )
        with socket.create_connection((host, int(port)), HANG_SECONDS) as connection:
            connection.sendall(head.encode() + b"w" * 10_000)
            wait_until(lambda: any((data / "uploads").glob("*/*")))
            killed.process.kill()
            killed.process.wait()
    (left_over,) = (data / "uploads").iterdir()
    # A job that it had taken, with its file.
    jobs = JobStore(data)
    folder = jobs.make_job_folder("documents.upload")
    (folder / "0").write_bytes(make_paper("Bicycles are parked under cover."))
    files = [{"name": "Statement.pdf", "stored_as": "0"}]
    job = jobs.add_job(
        "documents.upload",
        "1 file",
        {"application_ref": REFERENCE, "folder": str(folder), "files": files},
        job_folder=folder,
    )
    jobs.claim_job(["documents.upload"], "a process that was killed")
    with serve_room("documents", data=data):
        # At the start, before any form is sent.
        assert not left_over.exists()
        wait_until(lambda: jobs.get_job(job.id).has_ended)
    done = jobs.get_job(job.id)
    assert (done.state, done.attempts) == ("done", 2)
    assert done.outcome["rows"][0][:2] == ["Statement.pdf", "read"]
    assert not folder.exists()


# --- roles ---


@requirement("room:sign-in")
def test_what_a_role_may_not_do_is_neither_shown_nor_done(keyed_room: Served) -> None:
    keys = KeyRing(keyed_room.data)
    secrets = {"reader": keys.add_key("rita", read_only=True), "editor": keys.add_key("emil")}
    for role, secret in secrets.items():
        with httpx2.Client(
            base_url=keyed_room.url,
            headers={"Accept": "text/html", "Origin": keyed_room.url},
            timeout=HANG_SECONDS,
            trust_env=False,
        ) as client:
            client.post("/sign-in", data={"key": secret})
            page = client.get("/applications").text
            may_edit = role == "editor"
            assert ("Add documents" in page) is may_edit
            assert ("Add a policy" in client.get("/policies").text) is may_edit
            (token,) = re.findall(r'name="form_token" value="([^"]+)"', page)[:1]
            form = {"form_token": token, "ref": REFERENCE, "status": "decided"}
            response = client.post("/applications/change", data=form)
            assert response.status_code == (303 if may_edit else 403)
            unsigned = client.post("/applications/change", data={**form, "form_token": "x.y"})
            assert unsigned.status_code == 403


# --- policies ---


@requirement("room:console")
async def test_a_policy_is_added_read_and_shown_and_an_overlap_is_explained(
    browser: Browser, own_room: Served, tmp_path: Path
) -> None:
    file = tmp_path / "plan.pdf"
    file.write_bytes(
        make_paper("1. Bicycles are parked under cover.", "2. Oaks stand at the gate.")
    )
    async with open_page(browser, own_room.url) as watched:
        page = watched.page
        await watched.open("/policies")
        await page.get_by_label("Short name").fill("TOWN_PLAN")
        await page.get_by_label("Title").fill("Town Plan <script>alert(1)</script>")
        await page.get_by_role("button", name="Add").click()
        await page.wait_for_url("**/policies/TOWN_PLAN")
        await _send_revision(page, file)
        await page.wait_for_url("**/rev_*")
        # Polled by htmx until the reading has ended; then there is nothing to follow any more.
        await page.locator("#progress:empty").wait_for(state="attached")
        assert watched.messages == []
        await watched.open("/policies/TOWN_PLAN")
        assert await page.locator(".chart rect.span.active").count() == 1
        assert "Town Plan <script>" in await page.locator("main").inner_text()
        assert await watched.list_violations() == []
    other_file = tmp_path / "other.pdf"
    other_file.write_bytes(make_paper("1. Bicycles are parked in the rain."))
    async with open_page(browser, own_room.url, java_script_enabled=False) as plain:
        # Sent again, it is there already, and nothing is changed.
        await plain.open("/policies/TOWN_PLAN")
        await _send_revision(plain.page, file)
        await plain.page.get_by_text("Already there.").wait_for()
        assert "rev_TOWN_PLAN_2020_03" in plain.page.url
        # Another file shares its days with the first; without script the page itself says so.
        await plain.open("/policies/TOWN_PLAN")
        await _send_revision(plain.page, other_file)
        await plain.page.get_by_role("alert").wait_for()
        # Beside the field that it is about, and what was written is still there.
        assert "2020-03-01" in await plain.page.locator("#effective_from-error").inner_text()
        assert await plain.page.get_by_label("Its name").input_value() == "March 2020"
        assert "rev_TOWN_PLAN_2020_03" not in plain.page.url
        # Its name and its days can be changed.
        await plain.open("/policies/TOWN_PLAN/rev_TOWN_PLAN_2020_03")
        await plain.page.get_by_label("Its name").fill("Spring 2020")
        await plain.page.get_by_label("Last day in force").fill("2019-01-01")
        await plain.page.get_by_role("button", name="Save").click()
        await plain.page.get_by_role("alert").wait_for()
        assert "TOWN_PLAN (March 2020)" in await plain.page.title()
        await plain.open("/policies/TOWN_PLAN/rev_TOWN_PLAN_2020_03")
        await plain.page.get_by_label("Its name").fill("Spring 2020")
        await plain.page.get_by_label("Last day in force").fill("2024-12-31")
        await plain.page.get_by_role("button", name="Save").click()
        await plain.page.locator(".lead", has_text="31 December 2024").wait_for()
        await plain.open("/policies?date=2025-06-01")
        assert "Town Plan" in await plain.page.locator("main").inner_text()
        await plain.open("/policies/TOWN_PLAN?date=2025-06-01")
        assert (
            "no revision that was read here was in force"
            in await plain.page.locator("figcaption").inner_text()
        )


@requirement("room:console")
async def test_a_policy_is_renamed_gets_a_text_for_its_file_and_is_removed_whole(
    browser: Browser, own_room: Served, tmp_path: Path
) -> None:
    file = tmp_path / "plan.md"
    file.write_text("# Chapter 1\n\n1. Hedges are kept.\n", "utf-8")
    async with open_page(browser, own_room.url) as watched:
        page = watched.page
        await watched.open("/policies")
        await page.get_by_label("Short name").fill("HEDGE_PLAN")
        await page.get_by_label("Title").fill("Hedges")
        await page.get_by_label("Whose it is").fill("Fenland District Council")
        await page.get_by_role("button", name="Add").click()
        await page.wait_for_url("**/policies/HEDGE_PLAN")
        await page.get_by_label("How far it has come").select_option("draft")
        await _send_revision(page, file)
        await page.wait_for_url("**/rev_*")
        await page.locator("#progress:empty").wait_for(state="attached")
        await page.reload()
        assert "Not adopted yet (draft)" in await page.locator(".lead").inner_text()
        # A text has no pages that could be drawn, and its file is given all the same.
        await watched.open("/policies/HEDGE_PLAN")
        await page.get_by_text("Change this policy").click()
        await page.locator("#title").fill("Hedges and verges")
        await page.get_by_role("button", name="Save").click()
        await page.get_by_role("heading", name="Hedges and verges").wait_for()
        assert watched.messages == []
        await page.get_by_text("Change this policy").click()
        await page.get_by_role("link", name="Remove this policy").click()
        assert "1 revision" in await page.locator("main").inner_text()
        await page.get_by_role("button", name="Remove it with all").click()
        await page.wait_for_url("**/policies")
        assert "Hedges" not in await page.locator("main").inner_text()


async def _send_revision(page: Page, file: Path) -> None:
    await page.get_by_label("Its name").fill("March 2020")
    await page.get_by_label("In force from").fill("2020-03-01")
    await page.get_by_label("File", exact=True).set_input_files(file)
    await page.get_by_role("button", name="Send").click()
