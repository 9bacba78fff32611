"""Pages for people where something is refused: forms opened as pages, keys revoked, dead links."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from readingroom.bases import open_bases
from readingroom.federation.room import make_federated_base
from readingroom.server.app import build_app
from readingroom.server.auth.bearer import KeyAuth
from readingroom.server.auth.policies import AuthPolicies
from readingroom.server.faces import make_face, make_faces
from readingroom.settings import load_settings
from readingroom.storage.keys import KeyRing
from readingroom.storage.postgres import keys as postgres_keys
from readingroom.storage.postgres.keys import SharedKeyRing, open_keys
from tests.support.kit import make_app, open_app_client
from tests.support.postgres import PostgresServer, make_database
from tests.support.specimen import make_specimen

pytestmark = pytest.mark.anyio

BROWSER = {"Accept": "text/html"}
ORIGIN = {"Origin": "http://127.0.0.1"}
REVOKE_PATH = "/operations/keys/revoke"


@asynccontextmanager
async def open_signed_in_browser(data: Path, secret: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser of somebody who has a key."""
    async with open_app_client(make_app(make_specimen(), data=data)) as web:
        web.headers.update(BROWSER)
        form = {"key": secret, "next": "/"}
        answer = await web.post("/sign-in", data=form, headers=ORIGIN)
        assert answer.status_code == 303, answer.text
        yield web


@pytest.mark.parametrize(
    ("path", "form_page"),
    [
        ("/operations/keys/add", "/operations/keys"),
        ("/operations/keys/disconnect", "/operations/keys"),
        ("/operations/doctor", "/operations"),
        ("/sign-out", "/"),
    ],
)
async def test_a_form_address_opened_in_a_browser_is_a_page_that_leads_to_the_form(
    tmp_path: Path, path: str, form_page: str
) -> None:
    async with open_app_client(make_app(make_specimen(), data=tmp_path)) as web:
        page = await web.get(path, headers=BROWSER)
        assert (page.status_code, page.headers["allow"]) == (405, "POST")
        assert page.headers["content-type"].startswith("text/html")
        assert f'<a href="{form_page}">' in page.text.partition("<main")[2]
        assert (await web.get(form_page, headers=BROWSER)).status_code == 200
        program = await web.get(path)
        assert program.status_code == 405
        assert program.json()["error"]["code"] == "method_not_allowed"


async def test_revoking_asks_first_and_warns_of_ones_own_and_the_last_operators_key(
    tmp_path: Path,
) -> None:
    ring = KeyRing(tmp_path)
    secret = ring.add_key("ann", is_operator=True)
    ring.add_key("ben", read_only=True)
    async with open_signed_in_browser(tmp_path, secret) as web:
        keys_page = (await web.get("/operations/keys")).text
        assert f'action="{REVOKE_PATH}"' not in keys_page
        own = (await web.get(f"{REVOKE_PATH}?name=ann")).text
        assert "You are signed in with this key" in own
        assert "last key of an operator" in own
        other = (await web.get(f"{REVOKE_PATH}?name=ben")).text
        assert "You are signed in" not in other and "last key" not in other
        assert {key.name for key in ring.list_keys()} == {"ann", "ben"}
        token = re.findall(r'name="form_token" value="([^"]+)"', other)[-1]
        form = {"name": "ben", "form_token": token}
        answer = await web.post(REVOKE_PATH, data=form, headers=ORIGIN)
        assert (answer.status_code, answer.headers["location"]) == (303, "/operations/keys")
        assert {key.name for key in ring.list_keys()} == {"ann"}
        assert (await web.get(f"{REVOKE_PATH}?name=ben")).status_code == 404


async def test_with_two_operators_neither_key_is_the_last(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    secret = ring.add_key("ann", is_operator=True)
    ring.add_key("cleo", is_operator=True)
    async with open_signed_in_browser(tmp_path, secret) as web:
        assert "last key" not in (await web.get(f"{REVOKE_PATH}?name=ann")).text


async def test_who_is_no_operator_is_asked_nothing_about_keys(tmp_path: Path) -> None:
    secret = KeyRing(tmp_path).add_key("ben")
    async with open_signed_in_browser(tmp_path, secret) as web:
        assert (await web.get(f"{REVOKE_PATH}?name=ben")).status_code == 403


async def test_no_page_links_what_a_session_cannot_open(tmp_path: Path) -> None:
    secret = KeyRing(tmp_path).add_key("ann", is_operator=True)
    async with open_signed_in_browser(tmp_path, secret) as web:
        for path in ("/", "/operations", "/connect"):
            page = (await web.get(path)).text.partition("<main")[2]
            for address in set(re.findall(r'href="(/[^"#]*)"', page)):
                answer = await web.get(address)
                assert answer.status_code in (200, 303), (path, address, answer.status_code)


async def test_a_page_says_so_while_nobody_knows_whether_a_key_is_asked_for(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings({"data": tmp_path}, {})
    with make_database(postgres) as url:
        ring = open_keys(load_settings({"data": tmp_path}, {"READINGROOM_DATABASE_URL": url}))
        assert isinstance(ring, SharedKeyRing)
        faces = (make_face(open_bases(["text"], settings)[0]),)
        policies = AuthPolicies(faces, settings, KeyAuth(None, ring))
        async with open_app_client(build_app(faces, settings, policies)) as web:
            assert (await web.get("/", headers=BROWSER)).status_code == 200
            monkeypatch.setattr(postgres_keys, "_MAX_STALE_SECONDS", -1.0)
            page = await web.get("/", headers=BROWSER)
        ring.close()
    assert page.status_code == 503 and "text/html" in page.headers["content-type"]
    shown = page.text.partition("<main")[2]
    assert "the database that says whether a key is asked for does not answer" in shown


@pytest.mark.parametrize(
    ("path", "params", "kept"),
    [
        ("/search", {"q": "x" * 1001, "date": "2025-03-15"}, "x" * 1001),
        ("/search", {"q": "cycle parking", "date": "some day"}, "cycle parking"),
        ("/policies/check", {"source": "NPPF", "quote": "a"}, ">a</textarea>"),
        ("/policies/check", {"source": "NPPF", "quote": "These words", "date": "x"}, "These words"),
    ],
)
async def test_a_refused_question_is_shown_in_its_form_with_the_reason(
    tmp_path: Path, path: str, params: dict[str, str], kept: str
) -> None:
    settings = load_settings({"data": tmp_path}, {})
    bases = open_bases(["policy", "text"], settings)
    faces = make_faces(bases, make_federated_base(bases, settings, "http://127.0.0.1"))
    policies = AuthPolicies(faces, settings, KeyAuth(None, KeyRing(tmp_path)))
    async with open_app_client(build_app(faces, settings, policies)) as web:
        page = await web.get(path, params=params, headers=BROWSER)
        assert page.status_code == 422
        shown = page.text.partition("<main")[2]
        assert "It was not accepted" in shown and "/read?id=" not in shown
        assert f'action="{path}"' in shown and kept in shown
        program = await web.get(path, params=params)
        assert (program.status_code, "error" in program.json()) == (422, True)
