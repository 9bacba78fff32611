"""Apps connect by a sign-in: the whole dance with official clients, and attacks on each step."""

import re
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import AuthorizationParams, TokenError
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl
from starlette.requests import Request

from readingroom.protocol.pages import Visitor
from readingroom.server.auth.bearer import KeyAuth
from readingroom.server.auth.connectors import KeyBackedIssuer
from readingroom.server.pages.consent import ConsentPages
from readingroom.storage.browser_sessions import BrowserSession
from readingroom.storage.database import StateFile
from readingroom.storage.grants import (
    AUTHORIZATION_CODE_SECONDS,
    MAX_CLIENTS,
    MAX_CONSENT_REQUESTS,
    MAX_OLD_TOKENS,
    GrantStore,
)
from readingroom.storage.keys import KeyRing
from tests.requirements import requirement
from tests.support.connectors import (
    REDIRECT_URI,
    App,
    Person,
    call_tools,
    make_app,
    open_web,
    read_form,
    read_query,
    register,
)
from tests.support.kit import HANG_SECONDS, POST, Served, make_rpc, serve_room

pytestmark = requirement("room:connectors")

HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A server of two bases with one named key that may write, and its secret."""
    data = tmp_path_factory.mktemp("connectors") / "data"
    secret = KeyRing(data).add_key("ada", False, False)
    with serve_room(data=data, env={"READINGROOM_RATE_LIMIT": "60000"}) as served:
        yield served, secret


@pytest.fixture
def web(room: tuple[Served, str]) -> Iterator[httpx2.Client]:
    with open_web(room[0].url) as client:
        yield client


@pytest.fixture
def person(room: tuple[Served, str]) -> Iterator[Person]:
    served, secret = room
    with open_web(served.url, **HTML) as client:
        signed_in = Person(client, served.url)
        signed_in.sign_in(secret)
        yield signed_in


@pytest.fixture
def app(web: httpx2.Client) -> App:
    return make_app(web)


def get_tokens(app: App, person: Person, **changed: str) -> dict[str, Any]:
    response = app.exchange(person.allow(app.make_authorize_url(), **changed)["code"])
    assert response.status_code == 200, response.text
    tokens: dict[str, Any] = response.json()
    return tokens


def list_tool_names(response: httpx2.Response) -> set[str]:
    assert response.status_code == 200, response.text
    return {tool["name"] for tool in response.json()["result"]["tools"]}


# --- the way that honest clients go ---


class _Memory:
    """Where the SDK's client keeps its tokens."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@pytest.mark.anyio
async def test_the_python_sdk_connects_by_itself_and_refreshes(
    room: tuple[Served, str], person: Person
) -> None:
    served, _ = room
    answers: list[dict[str, str]] = []

    async def open_browser(url: str) -> None:
        answers.append(person.allow(url))

    async def receive_answer() -> AuthorizationCodeResult:
        answer = answers[-1]
        return AuthorizationCodeResult(
            code=answer["code"], state=answer["state"], iss=answer["iss"]
        )

    memory = _Memory()
    provider = OAuthClientProvider(
        f"{served.url}/policy/mcp",
        OAuthClientMetadata(client_name="SDK", redirect_uris=[REDIRECT_URI]),  # type: ignore[list-item]
        memory,
        open_browser,
        receive_answer,
    )
    async with httpx2.AsyncClient(auth=provider, timeout=HANG_SECONDS, trust_env=False) as web:
        transport = streamable_http_client(f"{served.url}/policy/mcp", http_client=web)
        async with Client(transport) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
    assert "policy_snapshot" in names
    assert memory.tokens and memory.tokens.refresh_token
    first_access = memory.tokens.access_token
    with open_web(served.url) as web_client:
        assert memory.client
        app = App(web_client, memory.client.model_dump(mode="json"))
        refreshed = app.refresh(
            memory.tokens.refresh_token, client_secret=str(memory.client.client_secret)
        ).json()
        assert refreshed["access_token"] != first_access
        assert call_tools(web_client, refreshed["access_token"], "/policy/mcp").status_code == 200


def test_a_refusal_leads_to_who_issues_tokens(room: tuple[Served, str], web: httpx2.Client) -> None:
    url = room[0].url
    refusal = web.post("/policy/mcp", json={})
    assert refusal.status_code == 401
    metadata_url = f"{url}/.well-known/oauth-protected-resource/policy/mcp"
    assert refusal.headers["www-authenticate"] == f'Bearer resource_metadata="{metadata_url}"'
    resource = web.get(metadata_url).json()
    assert resource["resource"] == f"{url}/policy/mcp"
    assert resource["authorization_servers"] == [url]
    issuer = web.get("/.well-known/oauth-authorization-server").json()
    assert issuer["issuer"] == url
    assert issuer["code_challenge_methods_supported"] == ["S256"]
    # REST takes keys only, so it leads nowhere.
    assert "resource_metadata" not in web.get("/api/policies").headers["www-authenticate"]


def test_an_app_may_read_unless_the_person_lets_it_change_things(
    web: httpx2.Client, app: App, person: Person
) -> None:
    reading = get_tokens(app, person)
    writing = get_tokens(app, person, changes="yes")
    assert (reading["scope"], writing["scope"]) == ("read", "read write")
    names = list_tool_names(call_tools(web, reading["access_token"]))
    more_names = list_tool_names(call_tools(web, writing["access_token"]))
    assert "search" in names
    assert "remove_document" in more_names - names


def test_the_page_names_the_app_where_the_answer_goes_and_what_it_may_ask(
    app: App, person: Person, room: tuple[Served, str]
) -> None:
    page = person.open_request(app.make_authorize_url(resource=f"{room[0].url}/policy/mcp"))
    assert page.status_code == 200
    for words in ("Test App", "127.0.0.1:1", "ada", "also change"):
        assert words in page.text
    policy = page.headers["content-security-policy"]
    assert "form-action 'self' http://127.0.0.1:1;" in policy
    assert page.headers["cache-control"] == "no-store"


def test_without_a_sign_in_the_request_waits_for_one(room: tuple[Served, str], app: App) -> None:
    served, secret = room
    with open_web(served.url, **HTML) as browser:
        asked = browser.get(app.make_authorize_url())
        to_sign_in = browser.get(asked.headers["location"])
        assert to_sign_in.status_code == 303
        target = read_query(to_sign_in.headers["location"])["next"]
        Person(browser, served.url).sign_in(secret)
        assert "Test App" in browser.get(target).text


def test_a_person_can_refuse(app: App, person: Person, room: tuple[Served, str]) -> None:
    response = person.answer(person.open_request(app.make_authorize_url()), "deny")
    assert read_query(response.headers["location"]) == {
        "error": "access_denied",
        "state": "state-1",
        "iss": room[0].url,
    }


def test_a_key_for_reading_gives_no_more_than_reading(
    room: tuple[Served, str], web: httpx2.Client, app: App
) -> None:
    served, _ = room
    secret = KeyRing(served.data).add_key("reader", True, False)
    with open_web(served.url, **HTML) as browser:
        reader = Person(browser, served.url)
        reader.sign_in(secret)
        page = reader.open_request(app.make_authorize_url())
        assert "It can only read" in page.text
        code = read_query(reader.answer(page, changes="yes").headers["location"])["code"]
    assert app.exchange(code).json()["scope"] == "read"


def test_an_operators_token_runs_no_server_and_the_operator_can_end_it(
    room: tuple[Served, str], web: httpx2.Client, app: App
) -> None:
    served, _ = room
    secret = KeyRing(served.data).add_key("boss", False, True)
    with open_web(served.url, **HTML) as browser:
        operator = Person(browser, served.url)
        operator.sign_in(secret)
        token = get_tokens(app, operator, changes="yes")["access_token"]
        page = browser.get("/operations/keys").text
        assert "Test App" in page
        assert call_tools(web, token).status_code == 200
    headers = {**HTML, "Authorization": f"Bearer {token}"}
    with open_web(served.url, **headers) as with_token:
        assert "Test App" not in with_token.get("/operations/keys").text
    with open_web(served.url, **HTML) as browser:
        operator = Person(browser, served.url)
        operator.sign_in(secret)
        page = browser.get("/operations/keys").text
        grants = re.findall(r'name="grant" value="([^"]+)"', page)
        (form_token, *_) = re.findall(r'name="form_token" value="([^"]+)"', page)
        for grant in grants:
            fields = {"grant": grant, "form_token": form_token}
            origin = {"Origin": served.url}
            browser.post("/operations/keys/disconnect", data=fields, headers=origin)
    assert call_tools(web, token).status_code == 401


# --- attacks: none gets through ---


@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)",
        "data:text/html,hi",
        "file:///etc/passwd",
        "blob:https://x/1",
        "http://evil.example/callback",
        "http://127.0.0.1.evil.example/",
        "https://user:word@app.example/",
        "https://app.example/#fragment",
        "vbscript:x",
        "https://app.example/" + "a" * 2000,
        # What a policy for pages gives a meaning: `;` ends a directive, `*` is every host.
        "https://a;sandbox.example/",
        "https://a,b.example/",
        "https://*/",
        "https://a'b.example/",
        "intent://scan/",
        "ms-msdt:/id",
        "search-ms:query=x",
        "jar:https://app.example!/",
        "chrome-extension://abc/",
        "http://localhost./callback",
        "http://[::ffff:203.0.113.9]/",
    ],
)
def test_a_client_registers_no_address_that_could_harm(web: httpx2.Client, uri: str) -> None:
    response = register(web, redirect_uris=[uri])
    assert response.status_code == 400
    assert response.json()["error"] == "invalid_redirect_uri"


@pytest.mark.parametrize(
    "changed",
    [
        {"redirect_uris": []},
        {"redirect_uris": ["https://a.example/"] * 11},
        {"client_name": "x" * 101},
        {"client_name": "Claude\u202egpj"},
        {"client_name": "two\nlines"},
        {"client_name": "A" + "\u0301" * 40},
        {"client_name": "zero\u200bwidth"},
        # Kept for every client, so a stranger could fill the disk with it.
        {"scope": "x" * 20_000},
        {"client_uri": "https://app.example/" + "x" * 20_000},
        {"software_id": "x" * 20_000},
        {"grant_types": ["password"]},
        {"response_types": ["token"]},
        {"token_endpoint_auth_method": "private_key_jwt"},
    ],
)
def test_odd_registrations_are_refused(web: httpx2.Client, changed: dict[str, Any]) -> None:
    assert register(web, **changed).status_code == 400


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:1/callback/more",
        "http://127.0.0.1:1/callback?x=1",
        "http://127.0.0.1:1/callback#x",
        "http://127.0.0.1:1@evil.example/callback",
        "http://evil.example/callback",
        "http://127.0.0.1:2/callback",
        "//evil.example/callback",
        "/callback",
    ],
)
def test_an_answer_goes_only_to_a_registered_address(
    web: httpx2.Client, app: App, uri: str
) -> None:
    response = web.get(app.make_authorize_url(redirect_uri=uri))
    assert response.status_code == 400
    assert "location" not in response.headers


def test_an_unknown_client_is_sent_nowhere(web: httpx2.Client, app: App) -> None:
    response = web.get(app.make_authorize_url(client_id="nobody"))
    assert response.status_code == 400
    assert "location" not in response.headers


@pytest.mark.parametrize(
    "changed",
    [
        {"code_challenge": None},
        {"code_challenge_method": "plain"},
        {"response_type": "token"},
        {"scope": "operator"},
    ],
)
def test_a_request_without_proof_of_possession_is_refused(
    web: httpx2.Client, app: App, changed: dict[str, str | None]
) -> None:
    answer = read_query(web.get(app.make_authorize_url(**changed)).headers["location"])
    assert "error" in answer
    assert "request" not in answer


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_that_says_too_much_is_not_kept(
    web: httpx2.Client, app: App, method: str
) -> None:
    url = app.make_authorize_url(state="s" * 9_000)
    response = web.get(url) if method == "GET" else web.post("/authorize", data=read_query(url))
    assert response.status_code == 302
    assert read_query(response.headers["location"])["error"] == "invalid_request"


def test_a_refusal_names_its_issuer_as_a_consent_does(
    web: httpx2.Client, app: App, room: tuple[Served, str]
) -> None:
    answer = read_query(web.get(app.make_authorize_url(scope="operator")).headers["location"])
    assert (answer["error"], answer["iss"]) == ("invalid_scope", room[0].url)


def test_a_program_of_the_computer_does_not_look_like_a_web_site(
    web: httpx2.Client, person: Person
) -> None:
    uri = "evil-app://claude.ai/callback"
    app = make_app(web, redirect_uris=[uri])
    page = person.open_request(app.make_authorize_url(redirect_uri=uri))
    assert "a program on your computer that opens evil-app: addresses" in page.text
    assert "claude.ai" not in page.text
    assert "form-action 'self' evil-app:;" in page.headers["content-security-policy"]


def test_of_ten_that_bring_one_code_at_once_at_most_one_gets_tokens(
    web: httpx2.Client, app: App, person: Person
) -> None:
    code = person.allow(app.make_authorize_url())["code"]
    with ThreadPoolExecutor(10) as pool:
        responses = list(pool.map(lambda _: app.exchange(code), range(10)))
    given = [response.json() for response in responses if response.status_code == 200]
    assert len(given) == 1
    # The others showed that the code was stolen, so what it gave is worth nothing.
    assert call_tools(web, given[0]["access_token"]).status_code == 401


def test_of_ten_that_bring_one_refresh_token_at_once_at_most_one_gets_tokens(
    web: httpx2.Client, app: App, person: Person
) -> None:
    refresh_token = get_tokens(app, person)["refresh_token"]
    with ThreadPoolExecutor(10) as pool:
        responses = list(pool.map(lambda _: app.refresh(refresh_token), range(10)))
    given = [response.json() for response in responses if response.status_code == 200]
    assert len(given) == 1
    assert call_tools(web, given[0]["access_token"]).status_code == 401


def test_of_ten_answers_to_one_request_one_counts(app: App, person: Person) -> None:
    page = person.open_request(app.make_authorize_url())
    with ThreadPoolExecutor(10) as pool:
        responses = list(pool.map(lambda _: person.answer(page), range(10)))
    assert [response.status_code for response in responses].count(302) == 1


def test_an_app_that_refreshes_without_end_fills_no_disk(tmp_path: Path) -> None:
    store = GrantStore(tmp_path, read_clock=lambda: 0.0)
    store.add_client("eager", "{}")
    request = store.find_request(store.add_request("eager", "{}"))
    assert request
    tokens = store.exchange_token("code", store.add_grant(request, "00", False, None))
    for _ in range(MAX_OLD_TOKENS + 10):
        assert tokens
        tokens = store.exchange_token("refresh", tokens[1])
    assert tokens
    assert store.find_token("access", tokens[0])
    with closing(sqlite3.connect(tmp_path / "grants.db")) as db:
        (count,) = db.execute("SELECT count(*) FROM tokens").fetchone()
    assert count <= 2 * MAX_OLD_TOKENS + 2


def test_one_client_cannot_drive_out_the_requests_of_others(tmp_path: Path) -> None:
    store = GrantStore(tmp_path)
    waiting = store.add_request("patient", "{}")
    last = ""
    for _ in range(MAX_CONSENT_REQUESTS + 10):
        last = store.add_request("flood", "{}")
    assert store.find_request(waiting)
    assert store.find_request(last)


def test_no_client_metadata_documents_are_promised(web: httpx2.Client) -> None:
    """The SDK's server does not read them: what it cannot do must not be offered."""
    issuer = web.get("/.well-known/oauth-authorization-server").json()
    assert "client_id_metadata_document_supported" not in issuer


def test_a_request_for_another_server_is_refused(app: App, person: Person) -> None:
    url = app.make_authorize_url(resource="https://other.example/mcp")
    response = person.open_request(url)
    assert read_query(response.headers["location"])["error"] == "invalid_target"


@pytest.mark.parametrize(
    "changed",
    [
        {"code_verifier": "wrong" * 10},
        {"code_verifier": ""},
        {"redirect_uri": "http://127.0.0.1:1/other"},
        {"code": "rrc_guess"},
        {"grant_type": "password"},
        {"client_id": "nobody"},
    ],
)
def test_a_stolen_code_is_worth_nothing(app: App, person: Person, changed: dict[str, str]) -> None:
    code = person.allow(app.make_authorize_url())["code"]
    response = app.exchange(**{"code": code, **changed})
    assert response.status_code in (400, 401)
    assert "access_token" not in response.text
    # What an attacker tries does not spend it.
    assert app.exchange(code).status_code == 200


def test_a_code_of_one_client_is_not_anothers(web: httpx2.Client, app: App, person: Person) -> None:
    code = person.allow(app.make_authorize_url())["code"]
    other = make_app(web)
    other.verifier = app.verifier
    assert other.exchange(code).json()["error"] == "invalid_grant"


def test_a_confidential_client_must_show_its_secret(web: httpx2.Client, person: Person) -> None:
    app = make_app(web, token_endpoint_auth_method="client_secret_post")
    code = person.allow(app.make_authorize_url())["code"]
    assert app.exchange(code).status_code == 401
    assert app.exchange(code, client_secret="wrong").status_code == 401
    secret = app.registration["client_secret"]
    assert app.exchange(code, client_secret=secret).status_code == 200


def test_a_code_that_comes_twice_ends_what_it_gave(
    web: httpx2.Client, app: App, person: Person
) -> None:
    code = person.allow(app.make_authorize_url())["code"]
    tokens = app.exchange(code).json()
    assert call_tools(web, tokens["access_token"]).status_code == 200
    assert app.exchange(code).json()["error"] == "invalid_grant"
    assert call_tools(web, tokens["access_token"]).status_code == 401
    assert app.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_refresh_token_that_comes_twice_ends_its_grant(
    web: httpx2.Client, app: App, person: Person
) -> None:
    tokens = get_tokens(app, person)
    newer = app.refresh(tokens["refresh_token"]).json()
    assert app.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert call_tools(web, newer["access_token"]).status_code == 401


def test_a_refresh_token_is_its_clients_and_grows_no_scope(
    web: httpx2.Client, app: App, person: Person
) -> None:
    tokens = get_tokens(app, person)
    other = make_app(web)
    assert other.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    response = app.refresh(tokens["refresh_token"], scope="read write")
    assert response.json()["error"] == "invalid_scope"
    assert app.refresh(tokens["refresh_token"]).status_code == 200


def test_a_revoked_token_is_refused_with_its_whole_grant(
    web: httpx2.Client, app: App, person: Person
) -> None:
    tokens = get_tokens(app, person)
    stranger = make_app(web)
    assert stranger.revoke(tokens["access_token"]).status_code == 200
    assert call_tools(web, tokens["access_token"]).status_code == 200
    assert app.revoke(tokens["refresh_token"]).status_code == 200
    assert call_tools(web, tokens["access_token"]).status_code == 401
    assert app.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_tokens_end_with_their_key(room: tuple[Served, str], web: httpx2.Client, app: App) -> None:
    served, _ = room
    ring = KeyRing(served.data)
    secret = ring.add_key("leaver", False, False)
    with open_web(served.url, **HTML) as browser:
        leaver = Person(browser, served.url)
        leaver.sign_in(secret)
        tokens = get_tokens(app, leaver)
        code = leaver.allow(app.make_authorize_url())["code"]
    assert call_tools(web, tokens["access_token"]).status_code == 200
    ring.revoke_key("leaver")
    assert call_tools(web, tokens["access_token"]).status_code == 401
    assert app.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert app.exchange(code).json()["error"] == "invalid_grant"
    # The same name with another secret is somebody else.
    ring.add_key("leaver", False, False)
    assert call_tools(web, tokens["access_token"]).status_code == 401


def test_a_token_opens_the_face_it_was_asked_for_and_nothing_else(
    room: tuple[Served, str], web: httpx2.Client, app: App, person: Person
) -> None:
    url = app.make_authorize_url(resource=f"{room[0].url}/policy/mcp")
    token = app.exchange(person.allow(url)["code"]).json()["access_token"]
    assert call_tools(web, token, "/policy/mcp").status_code == 200
    headers = {"Authorization": f"Bearer {token}"}
    assert call_tools(web, token, "/mcp").status_code == 401
    assert call_tools(web, token, "/documents/mcp").status_code == 401
    for path in ("/api/policies", "/metrics", "/policies", "/openapi.json"):
        assert web.get(path, headers=headers).status_code == 401, path


def test_naming_another_face_with_the_code_or_a_refresh_widens_nothing(
    room: tuple[Served, str], web: httpx2.Client, app: App, person: Person
) -> None:
    policy_url, all_url = f"{room[0].url}/policy/mcp", f"{room[0].url}/mcp"
    code = person.allow(app.make_authorize_url(resource=policy_url))["code"]
    answer = app.exchange(code, resource=all_url)
    tokens = [answer.json()] if answer.status_code == 200 else []
    if tokens:
        answer = app.refresh(tokens[0]["refresh_token"], resource=all_url)
        tokens += [answer.json()] if answer.status_code == 200 else []
    for issued in tokens:
        assert call_tools(web, issued["access_token"], "/mcp").status_code == 401


def test_a_session_of_one_app_is_not_anothers_and_ends_with_the_key(
    room: tuple[Served, str], web: httpx2.Client, app: App
) -> None:
    served, _ = room
    ring = KeyRing(served.data)
    secret = ring.add_key("sharer", False, False)
    with open_web(served.url, **HTML) as browser:
        sharer = Person(browser, served.url)
        sharer.sign_in(secret)
        own, other = (get_tokens(app, sharer)["access_token"] for _ in range(2))
    opening = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "app", "version": "0"},
    }
    headers = {**POST, "Authorization": f"Bearer {own}"}
    started = web.post("/mcp", json=make_rpc("initialize", opening), headers=headers)
    headers["Mcp-Session-Id"] = started.headers["mcp-session-id"]

    def list_with(token: str) -> int:
        credentials = {**headers, "Authorization": f"Bearer {token}"}
        return web.post("/mcp", json=make_rpc("tools/list"), headers=credentials).status_code

    assert list_with(own) == 200
    # The same key, and another app that it allowed.
    assert list_with(other) in (403, 404)
    ring.revoke_key("sharer")
    assert list_with(own) == 401


def test_neither_a_refresh_token_nor_a_code_is_an_access_token(
    web: httpx2.Client, app: App, person: Person
) -> None:
    answer = person.allow(app.make_authorize_url())
    tokens = app.exchange(answer["code"]).json()
    for token in (tokens["refresh_token"], answer["code"], "rra_guess", "rra_"):
        assert call_tools(web, token).status_code == 401


def test_another_site_cannot_answer_for_a_person(
    app: App, person: Person, room: tuple[Served, str]
) -> None:
    page = person.open_request(app.make_authorize_url())
    fields = {**read_form(page.text), "answer": "allow"}
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {},
    ):
        response = person.web.post("/authorize/consent", data=fields, headers=headers)
        assert response.status_code == 403, headers
    for token in ("", "a.b", fields["form_token"][:-1]):
        response = person.answer(page, form_token=token)
        assert response.status_code == 403
    assert person.answer(page).status_code == 302


def test_one_persons_form_is_not_anothers(
    app: App, person: Person, room: tuple[Served, str]
) -> None:
    served, secret = room
    page = person.open_request(app.make_authorize_url())
    with open_web(served.url, **HTML) as browser:
        other = Person(browser, served.url)
        other.sign_in(secret)
        assert other.answer(page).status_code == 403


def test_a_request_is_answered_once(app: App, person: Person) -> None:
    page = person.open_request(app.make_authorize_url())
    assert person.answer(page).status_code == 302
    assert person.answer(page).status_code == 403


def test_an_app_cannot_consent_with_a_key_or_a_token(
    room: tuple[Served, str], web: httpx2.Client, app: App, person: Person
) -> None:
    _, secret = room
    location = web.get(app.make_authorize_url()).headers["location"]
    token = get_tokens(app, person)["access_token"]
    for credential in (secret, token):
        headers = {**HTML, "Authorization": f"Bearer {credential}"}
        response = web.get(location, headers=headers)
        assert response.headers.get("location", "").startswith("/sign-in?"), response.status_code


def test_the_page_cannot_be_framed_and_shows_names_as_text(
    web: httpx2.Client, person: Person
) -> None:
    app = make_app(web, client_name='<img src=x onerror="alert(1)">')
    page = person.open_request(app.make_authorize_url())
    assert "<img" not in page.text
    assert "&lt;img" in page.text
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


def test_registering_without_end_fills_no_disk(tmp_path: Path) -> None:
    moments = iter(range(10**6))
    store = GrantStore(tmp_path, read_clock=lambda: float(next(moments)))
    for number in range(MAX_CLIENTS + 50):
        store.add_client(f"client-{number}", "{}")
    assert store.find_client_metadata("client-0") is None
    assert store.find_client_metadata(f"client-{MAX_CLIENTS + 49}") == "{}"


def test_a_client_with_a_grant_is_kept_and_codes_end(tmp_path: Path) -> None:
    now = [0.0]
    store = GrantStore(tmp_path, read_clock=lambda: now[0])
    store.add_client("kept", "{}")
    request_id = store.add_request("kept", "{}")
    request = store.find_request(request_id)
    assert request
    code = store.add_grant(request, "00", False, None)
    for number in range(MAX_CLIENTS + 50):
        now[0] += 0.01
        store.add_client(f"client-{number}", "{}")
    assert store.find_client_metadata("kept") == "{}"
    assert store.find_token("code", code)
    now[0] += AUTHORIZATION_CODE_SECONDS + 1
    assert store.find_token("code", code) is None
    assert (tmp_path / "grants.db").stat().st_mode & 0o077 == 0


def test_an_open_server_and_a_plain_address_issue_nothing(tmp_path: Path) -> None:
    with serve_room("text", data=tmp_path / "open", env={"READINGROOM_RATE_LIMIT": "0"}) as served:
        response = served.get("/.well-known/oauth-authorization-server")
        assert response.status_code == 404
        assert (
            served.get("/.well-known/oauth-protected-resource").json()["authorization_servers"]
            == []
        )
    env = {"MCP_API_KEY": "sesame-sesame-sesame", "READINGROOM_PUBLIC_URL": "http://room.example"}
    with serve_room("text", data=tmp_path / "plain", env=env) as served:
        assert served.get("/.well-known/oauth-authorization-server").status_code == 404
        refusal = served.get("/mcp", Accept="text/event-stream")
        assert "resource_metadata" not in refusal.headers["www-authenticate"]


def test_connectors_can_be_switched_off(tmp_path: Path) -> None:
    env = {"MCP_API_KEY": "sesame-sesame-sesame", "READINGROOM_CONNECTORS": "false"}
    with serve_room("text", data=tmp_path / "data", env=env) as served:
        for path in ("/.well-known/oauth-authorization-server", "/authorize", "/token"):
            assert served.get(path).status_code == 401


class _SignedIn:
    """Browsers of one person who has signed in, and whose forms are our own."""

    def identify_visitor(self, scope: Any) -> Visitor:
        return Visitor("ada", "editor")

    def find_request_session(self, scope: Any) -> BrowserSession:
        return BrowserSession("session", "ab" * 32)

    def check_form_token(self, scope: Any, fields: Any) -> None:
        return None


@pytest.mark.anyio
async def test_the_event_loop_never_waits_for_the_database_of_apps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    begin_reading = StateFile.begin_reading

    def note_thread(tables: StateFile) -> Any:
        threads.append(threading.get_ident())
        return begin_reading(tables)

    monkeypatch.setattr(StateFile, "begin_reading", note_thread)
    grants = GrantStore(tmp_path)
    issuer = KeyBackedIssuer(grants, KeyAuth("sesame-sesame-sesame", KeyRing(tmp_path), grants))
    redirect_uri = AnyUrl(REDIRECT_URI)
    client = OAuthClientInformationFull(client_id="app", redirect_uris=[redirect_uri])
    await issuer.register_client(client)
    assert await issuer.get_client("app")
    params = AuthorizationParams(
        state="s",
        scopes=["read"],
        code_challenge="c",
        redirect_uri=redirect_uri,
        redirect_uri_provided_explicitly=True,
    )
    request_id = (await issuer.authorize(client, params)).rpartition("=")[2]
    frame: Any = SimpleNamespace(browser_auth=_SignedIn())
    pages = ConsentPages(frame, grants, {"": "Reading Room"}, "https://room.example")

    async def receive() -> dict[str, Any]:
        form = urlencode({"request": request_id, "answer": "allow"})
        return {"type": "http.request", "body": form.encode(), "more_body": False}

    form_type = (b"content-type", b"application/x-www-form-urlencoded")
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [form_type], "state": {}}
    answer = await pages.answer_consent_request(Request(scope, receive))
    code = read_query(answer.headers["location"])["code"]
    found = await issuer.load_authorization_code(client, code)
    assert found is not None
    with pytest.raises(TokenError):  # nobody has a key with that digest
        await issuer.exchange_authorization_code(client, found)
    assert len(threads) >= 6 and threading.get_ident() not in threads
