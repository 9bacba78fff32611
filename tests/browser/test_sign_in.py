"""People sign in with a key: the way to a page and back, roles, revoking, forms of other pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import httpx2
import pytest
from playwright.async_api import Browser

from readingroom.storage.browser_sessions import (
    MAX_IDLE_SECONDS,
    MAX_SESSION_AGE_SECONDS,
    BrowserSessions,
)
from readingroom.storage.keys import KeyRing
from tests.browser.conftest import API_KEY
from tests.requirements import requirement
from tests.support.browser import SCHEMES, WIDTHS, Watched, open_page
from tests.support.kit import HANG_SECONDS, Served, make_rpc, serve_room

pytestmark = pytest.mark.anyio

CITATION = "/read?id=text:kb"
HTML = {"Accept": "text/html"}


@contextmanager
def sign_in(served: Served, key: str) -> Iterator[httpx2.Client]:
    """A browser's cookie jar, signed in."""
    with httpx2.Client(
        base_url=served.url, headers=HTML, timeout=HANG_SECONDS, trust_env=False
    ) as client:
        form = {"key": key, "next": "/"}
        response = client.post("/sign-in", data=form, headers={"Origin": served.url})
        assert response.status_code == 303, response.text
        yield client


async def check_shapes(watched: Watched) -> None:
    """Look at a small page in light and dark, wide and narrow."""
    for scheme, width in product(SCHEMES, WIDTHS):
        await watched.show_as(scheme, width)
        assert await watched.measure_overflow() <= 0, width
        assert await watched.list_violations() == [], (scheme, width)


@requirement("room:sign-in")
@pytest.mark.parametrize("has_script", [True, False])
async def test_a_citation_leads_to_sign_in_and_from_there_to_its_passage(
    browser: Browser, keyed_room: Served, has_script: bool
) -> None:
    async with open_page(browser, keyed_room.url, java_script_enabled=has_script) as watched:
        await watched.open(CITATION)
        assert "/sign-in?next=" in watched.page.url
        if has_script:
            await check_shapes(watched)
        await watched.page.get_by_label("Your key").fill("wrong")
        await watched.page.get_by_role("button", name="Sign in").click()
        await watched.page.get_by_role("alert").wait_for()
        if has_script:
            assert await watched.list_violations() == []
        await watched.page.get_by_label("Your key").fill(API_KEY)
        await watched.page.get_by_role("button", name="Sign in").click()
        await watched.page.wait_for_url(f"**{CITATION}")
        assert "under cover" in await watched.page.locator(".passage").inner_text()
        cookies = await watched.page.context.cookies()
        port = keyed_room.url.rpartition(":")[2]
        (cookie,) = [cookie for cookie in cookies if cookie.get("name") == f"rr-{port}"]
        assert (cookie.get("sameSite"), cookie.get("httpOnly")) == ("Lax", True)
        # From a page of another site, as a chat is one.
        await watched.page.goto("about:blank")
        await watched.page.set_content(f'<a href="{keyed_room.url}{CITATION}">cited</a>')
        await watched.page.get_by_text("cited").click()
        await watched.page.wait_for_url(f"**{CITATION}")
        await watched.page.get_by_role("button", name="Sign out").click()
        await watched.page.wait_for_url("**/sign-in")
        await watched.open(CITATION)
        assert "/sign-in" in watched.page.url


@requirement("room:sign-in")
@pytest.mark.parametrize(
    "target", ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"]
)
def test_sign_in_leads_to_no_other_site(keyed_room: Served, target: str) -> None:
    response = httpx2.post(
        keyed_room.url + "/sign-in",
        data={"key": API_KEY, "next": target},
        headers={"Origin": keyed_room.url},
        timeout=HANG_SECONDS,
        trust_env=False,
    )
    assert (response.status_code, response.headers["location"]) == (303, "/")


@requirement("room:sign-in")
def test_a_session_opens_pages_and_nothing_that_programs_use(keyed_room: Served) -> None:
    with sign_in(keyed_room, API_KEY) as client:
        assert client.get(CITATION).status_code == 200
        assert client.get("/docs").status_code == 200
        for path in ("/metrics", "/v1/bills", "/api/v1/policies", "/openapi.json"):
            assert client.get(path).status_code == 401, path
            for page in ("/", "/docs"):
                assert f'href="{path}"' not in client.get(page).text, (page, path)
        assert client.post("/mcp", json=make_rpc("tools/list")).status_code == 401
        assert client.post("/text/mcp", json=make_rpc("tools/list")).status_code == 401


@requirement("room:sign-in")
def test_who_has_not_signed_in_is_led_to_the_form_and_programs_are_refused(
    keyed_room: Served,
) -> None:
    led = keyed_room.get(CITATION, **HTML)
    assert (led.status_code, led.headers["location"]) == (
        303,
        "/sign-in?next=%2Fread%3Fid%3Dtext%3Akb",
    )
    assert keyed_room.get(CITATION).status_code == 401


@requirement("room:sign-in")
def test_a_revoked_key_ends_its_sessions_at_the_next_request(keyed_room: Served) -> None:
    keys = KeyRing(keyed_room.data)
    secret = keys.add_key("ann", read_only=True)
    with sign_in(keyed_room, secret) as client:
        page = client.get(CITATION)
        assert page.status_code == 200 and "ann, reader" in page.text
        keys.revoke_key("ann")
        assert client.get(CITATION).status_code == 303


@requirement("room:sign-in")
def test_servers_on_two_ports_have_sessions_of_their_own(
    keyed_room: Served, tmp_path: Path
) -> None:
    other_data = tmp_path / "data"
    other_key = KeyRing(other_data).add_key("ann")
    with (
        serve_room("text", data=other_data) as other,
        sign_in(keyed_room, API_KEY) as client,
    ):
        form = {"key": other_key, "next": "/"}
        # The same browser: cookies do not distinguish ports.
        answer = client.post(f"{other.url}/sign-in", data=form, headers={"Origin": other.url})
        assert answer.status_code == 303
        assert client.get(f"{other.url}/connect").status_code == 200
        assert client.get(CITATION).status_code == 200


@requirement("room:sign-in")
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost:3000"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {},
    ],
)
def test_a_form_of_another_page_is_refused(keyed_room: Served, headers: dict[str, str]) -> None:
    with sign_in(keyed_room, API_KEY) as client:
        assert client.post("/sign-out", data={}, headers=headers).status_code == 403
        # From our own page, but without its token.
        own = {"Origin": keyed_room.url}
        assert client.post("/sign-out", data={}, headers=own).status_code == 403
        assert client.get(CITATION).status_code == 200


@requirement("room:sign-in")
def test_numbers_that_are_too_long_are_no_pages_and_no_errors(room: Served) -> None:
    for path in (
        f"/documents/x/pages/{'9' * 4400}.webp",
        f"/documents/x/pages/{'9' * 4400}",
        f"/policies/NPPF/x/pages/{'9' * 4400}.webp",
        f"/records/bills?congress={'9' * 5000}",
    ):
        response = httpx2.get(
            room.url + path, headers={"Accept": "text/html"}, timeout=HANG_SECONDS, trust_env=False
        )
        assert response.status_code < 500, path


@requirement("room:sign-in")
def test_without_a_key_pages_of_other_ports_change_nothing_over_rest(room: Served) -> None:
    policy = {"source": "FOREIGN", "title": "Foreign", "category": "national_policy"}
    for origin in ("http://localhost:3000", "http://127.0.0.1:1"):
        response = httpx2.post(
            room.url + "/api/v1/policies",
            json=policy,
            headers={"Origin": origin},
            timeout=HANG_SECONDS,
            trust_env=False,
        )
        assert response.status_code == 403, origin
    assert httpx2.post(
        room.url + "/text/mcp",
        json=make_rpc("tools/list"),
        headers={"Origin": "http://localhost:6274", "Accept": "application/json"},
        timeout=HANG_SECONDS,
        trust_env=False,
    ).status_code not in (401, 403)


def test_a_session_ends_when_it_is_idle_or_old(tmp_path: Path) -> None:
    now = 1_000_000.0
    sessions = BrowserSessions(tmp_path, lambda: now)
    session = sessions.start_session("ab" * 32)
    assert sessions.find_session(session.session_id) == session
    for _ in range(25):  # in use all the time, it ends all the same
        now += MAX_IDLE_SECONDS - 1
        if now - 1_000_000 > MAX_SESSION_AGE_SECONDS:
            break
        assert sessions.find_session(session.session_id) == session
    assert sessions.find_session(session.session_id) is None
    idle = sessions.start_session("ab" * 32)
    now += MAX_IDLE_SECONDS + 1
    assert sessions.find_session(idle.session_id) is None
    assert idle.session_id.encode() not in (tmp_path / "sessions.db").read_bytes()


@requirement("room:sign-in")
@pytest.mark.parametrize("has_script", [True, False])
async def test_the_first_key_signs_its_browser_in_and_closes_the_server_to_others(
    browser: Browser, tmp_path: Path, has_script: bool
) -> None:
    with serve_room("text", data=tmp_path / "data") as served:
        async with (
            open_page(browser, served.url, java_script_enabled=has_script) as maker,
            open_page(browser, served.url) as other,
        ):
            await other.open("/connect")
            await maker.open("/operations/keys")
            await maker.page.get_by_label("Whose it is").fill("ann")
            await maker.page.get_by_role("button", name="Make it").click()
            secret = maker.page.get_by_text("rr_")
            await secret.wait_for()
            if has_script:
                assert await maker.list_violations() == []
            headers = {"Authorization": f"Bearer {await secret.inner_text()}"}
            assert served.get("/metrics", **headers).status_code == 200
            assert await maker.open("/operations") == 200
            await other.open("/connect")
            assert "/sign-in" in other.page.url
            # A second key, then the first is revoked by its own holder.
            await maker.open("/operations/keys")
            await maker.page.get_by_label("Whose it is").fill("ben")
            await maker.page.get_by_label("Role").select_option("reader")
            await maker.page.get_by_role("button", name="Make it").click()
            await maker.page.get_by_text("The key of ben").wait_for()
            await maker.page.get_by_role("link", name="Revoke ann").click()
            await maker.page.get_by_text("You are signed in with this key").wait_for()
            await maker.page.get_by_role("button", name="Revoke it").click()
            await maker.page.wait_for_url("**/sign-in?*")
    assert [(key.name, key.read_only) for key in KeyRing(served.data).list_keys()] == [
        ("ben", True)
    ]


@requirement("room:sign-in")
def test_only_an_operator_sees_operations_and_makes_keys(keyed_room: Served) -> None:
    keys = KeyRing(keyed_room.data)
    secrets = {"editor": keys.add_key("ben"), "operator": keys.add_key("cleo", is_operator=True)}
    for role, secret in secrets.items():
        is_operator = role == "operator"
        with sign_in(keyed_room, secret) as client:
            assert ("/operations" in client.get("/connect").text) is is_operator
            assert ('href="/operations"' in client.get("/").text) is is_operator
            for path in (
                "/operations",
                "/operations/jobs",
                "/operations/errors",
                "/operations/keys",
            ):
                assert client.get(path).status_code == (200 if is_operator else 403)
            form = {"name": f"by-{role}", "role": "operator", "form_token": "x.y"}
            response = client.post(
                "/operations/keys/add", data=form, headers={"Origin": keyed_room.url}
            )
            assert response.status_code == 403
    names = {key.name for key in keys.list_keys()}
    assert {"ben", "cleo"} <= names and not names & {"by-editor", "by-operator"}


@requirement("room:metrics")
def test_pages_and_rest_are_counted_by_their_routes(room: Served) -> None:
    room.get("/policies", Accept="text/html")
    room.get("/api/v1/policies")
    room.get("/policies/NOTHING", Accept="text/html")
    metrics = room.get("/metrics").text
    for route, status in (
        ("GET /policies", 200),
        ("GET /api/v1/policies", 200),
        ("GET /policies/{source}", 404),
    ):
        assert f'readingroom_http_requests_total{{route="{route}",status="{status}"}}' in metrics
