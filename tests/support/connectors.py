"""A person with a key who answers apps, and an app that asks: both over real HTTP."""

import base64
import hashlib
import html
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2

from tests.support.kit import HANG_SECONDS, POST, make_rpc

REDIRECT_URI = "http://127.0.0.1:1/callback"
"""Nobody listens there: where a browser is sent is read, not followed."""


class Person:
    """A browser that has signed in with a key."""

    def __init__(self, web: httpx2.Client, origin: str) -> None:
        self.web = web
        self._origin = origin

    def sign_in(self, key: str) -> None:
        form = {"key": key, "next": "/"}
        response = self.web.post("/sign-in", data=form, headers={"Origin": self._origin})
        assert response.status_code == 303, response.text

    def open_request(self, authorize_url: str) -> httpx2.Response:
        """The page that a client's request leads to."""
        response = self.web.get(authorize_url)
        assert response.status_code == 302, response.text
        return self.web.get(response.headers["location"])

    def answer(
        self, page: httpx2.Response, answer: str = "allow", **changed: str
    ) -> httpx2.Response:
        fields = {**read_form(page.text), "answer": answer, **changed}
        return self.web.post("/authorize/consent", data=fields, headers={"Origin": self._origin})

    def allow(self, authorize_url: str, **changed: str) -> dict[str, str]:
        """Allow what a client asks for; return what it is sent back."""
        response = self.answer(self.open_request(authorize_url), **changed)
        assert response.status_code == 302, response.text
        return read_query(response.headers["location"])


@dataclass
class App:
    """A client that asks for tokens, one step at a time, so that each can go wrong."""

    web: httpx2.Client
    registration: dict[str, Any]
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    @property
    def client_id(self) -> str:
        return str(self.registration["client_id"])

    def make_authorize_url(self, **changed: str | None) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT_URI,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
            "state": "state-1",
            **changed,
        }
        kept = {name: value for name, value in query.items() if value is not None}
        return f"/authorize?{httpx2.QueryParams(kept)}"

    def exchange(self, code: str, **changed: str) -> httpx2.Response:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": REDIRECT_URI,
            "client_id": self.client_id,
            "code_verifier": self.verifier,
            **changed,
        }
        return self.web.post("/token", data=form)

    def refresh(self, refresh_token: str, **changed: str) -> httpx2.Response:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": refresh_token,
            "client_id": self.client_id,
            **changed,
        }
        return self.web.post("/token", data=form)

    def revoke(self, token: str) -> httpx2.Response:
        return self.web.post("/revoke", data={"token": token, "client_id": self.client_id})


def register(web: httpx2.Client, **changed: Any) -> httpx2.Response:
    metadata = {
        "client_name": "Test App",
        "redirect_uris": [REDIRECT_URI],
        "token_endpoint_auth_method": "none",
        **changed,
    }
    return web.post("/register", json=metadata)


def make_app(web: httpx2.Client, **changed: Any) -> App:
    response = register(web, **changed)
    assert response.status_code == 201, response.text
    return App(web, response.json())


def call_tools(web: httpx2.Client, token: str, path: str = "/mcp") -> httpx2.Response:
    """`tools/list` with a token, on the wire without sessions."""
    headers = {**POST, "Authorization": f"Bearer {token}", "Mcp-Method": "tools/list"}
    headers["MCP-Protocol-Version"] = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return web.post(path, json=make_rpc("tools/list", {"_meta": meta}), headers=headers)


@contextmanager
def open_web(url: str, **headers: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=url, headers=headers, timeout=HANG_SECONDS, trust_env=False) as web:
        yield web


def read_form(page: str) -> dict[str, str]:
    """The hidden fields of the form that answers a client."""
    (form,) = re.findall(r'action="/authorize/consent">(.*?)</form>', page, re.DOTALL)
    fields = re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', form)
    return {name: html.unescape(value) for name, value in fields}


def read_query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
