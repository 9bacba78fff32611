"""The trivial tool three times: a plain Starlette route, the bare SDK server, a base of ours."""

from dataclasses import replace

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from benchmarks.server.peer import SERVER_NAME, SERVER_TITLE, build_peer_server
from readingroom import __version__
from readingroom.protocol.errors import StatusDialect
from readingroom.protocol.spec import KnowledgeBase
from readingroom.protocol.tool import Answer, ToolArguments, ToolContext, make_tool
from readingroom.server.app import build_app
from readingroom.server.auth.bearer import KeyAuth
from readingroom.server.auth.policies import AuthPolicies
from readingroom.server.faces import make_face
from readingroom.settings import Settings

_NO_LIMIT = 10**9  # requests a minute: the limiter counts every one and refuses none


def build_plain_app() -> Starlette:
    """The floor: the argument read from the same body, the same object as JSON."""
    return Starlette(routes=[Route("/mcp", _answer_plainly, methods=["POST"])])


def build_peer_app(stateful: bool, lean: bool) -> Starlette:
    """The peer: the app that the SDK itself makes of a low-level server."""
    return build_peer_server(__version__, lean).streamable_http_app(
        stateless_http=not stateful, json_response=not stateful
    )


def build_our_app(stateful: bool, key_auth: KeyAuth) -> Starlette:
    """Ours, with everything on: validation, key, rate limit, metrics, the log as configured."""
    faces = (make_face(replace(_BASE, stateful=stateful)),)
    settings = Settings(rate_limit=_NO_LIMIT)
    return build_app(faces, settings, AuthPolicies(faces, settings, key_auth))


async def _answer_plainly(request: Request) -> Response:
    message = await request.json()
    return JSONResponse({"text": message["params"]["arguments"]["text"]})


class Echo(ToolArguments):
    text: str


class Echoed(Answer):
    text: str


async def echo(question: Echo, call: ToolContext) -> Echoed:
    """Say the text again."""
    return Echoed(text=question.text)


_BASE = KnowledgeBase(
    name="echo",
    server_name=SERVER_NAME,
    title=SERVER_TITLE,
    instructions="",
    error_dialect=StatusDialect(),
    tools=(make_tool(echo, title="Echo"),),
    service=None,
)
