"""An authorization server in a process of its own, whose tokens and keys a test orders."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests import node
from tests.support.kit import clean_environment
from tests.support.processes import HANG_SECONDS

AUDIENCE = "https://room.example.org/mcp"
SUBJECT = "auth0|ann"
OPENID = "/.well-known/openid-configuration"
RFC_8414 = "/.well-known/oauth-authorization-server"

_PROGRAM = Path(node.__file__).parent / "authorization-server.mjs"


@dataclass
class Issuer:
    """npm's oauth2-mock-server, running."""

    process: subprocess.Popen[str]
    url: str = field(init=False)
    kid: str = field(init=False)

    def __post_init__(self) -> None:
        ready = self._line()
        self.url, self.kid = ready["issuer"], ready["kid"]

    def token(
        self, header: dict[str, Any] | None = None, kid: str | None = None, **claims: Any
    ) -> str:
        """A signed token, good unless a claim or the header says otherwise; None drops a claim."""
        whole = {"sub": SUBJECT, "aud": AUDIENCE} | claims
        order = {"claims": whole, "header": header or {}, "kid": kid or self.kid}
        return str(self._order("token", **order)["token"])

    def rotate(self, alg: str = "RS256") -> str:
        """A new key, with which tokens are signed from now on; the old one stays in the set."""
        self.kid = self._order("rotate", alg=alg)["kid"]
        return self.kid

    def withdraw(self, kid: str) -> None:
        self._order("withdraw", kid=kid)

    @contextlib.contextmanager
    def publishing(self, keys: list[Any]) -> Iterator[None]:
        """Shows this key set for a while, whatever it is."""
        self._order("publish", keys=keys)
        try:
            yield
        finally:
            self._order("publish", keys=None)

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """Answers 503 to everything for a while."""
        self._order("down", value=True)
        try:
            yield
        finally:
            self._order("down", value=False)

    def asked(self) -> dict[str, int]:
        """How often each path was asked for since this was last called."""
        return self._order("asked")

    def public_keys(self) -> list[dict[str, Any]]:
        listed = httpx2.get(f"{self.url}/jwks", timeout=HANG_SECONDS, trust_env=False).json()[
            "keys"
        ]
        return list(listed)

    def settings(self, **more: str) -> dict[str, str]:
        """The environment of a server that takes its tokens."""
        return {
            "JOSH_AUTH": "oauth",
            "JOSH_OAUTH_ISSUER": self.url,
            "JOSH_OAUTH_AUDIENCE": AUDIENCE,
            **more,
        }

    def _order(self, what: str, **how: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": what, **how}) + "\n")
        self.process.stdin.flush()
        return self._line()

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))


@contextlib.contextmanager
def run_issuer(metadata: str = OPENID) -> Iterator[Issuer]:
    """An authorization server whose metadata is at this path."""
    process = subprocess.Popen(
        [str(node.find_node()), str(_PROGRAM), metadata],
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Issuer(process)
        finally:
            process.kill()
