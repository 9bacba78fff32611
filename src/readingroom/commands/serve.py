"""`readingroom serve`: one base or all of them over HTTP."""

import json
import logging
import os
import secrets
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from readingroom import __version__
from readingroom.commands.console import common, log_level
from readingroom.commands.errors import UnsafeBind
from readingroom.commands.sample import load_in_background, renew, sample_upstream
from readingroom.core.errors import InvalidSetting
from readingroom.core.settings import Settings, load, revealed
from readingroom.protocol.base import KnowledgeBase
from readingroom.server.catalogue import ALL_PORT, OFFERS, ROOM, desk_of, open_bases
from readingroom.server.faces import Face, face_of, faces_of_all

if TYPE_CHECKING:
    from readingroom.server.auth.keys import Posture
    from readingroom.server.auth.policies import Guards
    from readingroom.server.run import Certificate

logger = logging.getLogger(__name__)


@click.command()
@click.argument("base", type=click.Choice(sorted(OFFERS)), required=False)
@click.option("--host", help="Address to listen on [127.0.0.1].")
@click.option("--port", type=int, help="Port to listen on [8000, or the base's own].")
@click.option("--tls-cert", type=click.Path(), help="Speak HTTPS: certificate chain, PEM.")
@click.option("--tls-key", type=click.Path(), help="The private key of that certificate, PEM.")
@click.option("--insecure", is_flag=True, default=None, help="Allow a public address with no key.")
@click.option("--read-only", is_flag=True, default=None, help="List no tool that writes.")
@click.option("--file", "kb_file", type=click.Path(), help="The text base's file [KB_FILE].")
@click.option("--reset", is_flag=True, help="With --demo: load the sample anew.")
@log_level
@partial(common, makes_sample=True)
def serve(base: str | None, reset: bool, as_json: bool, **flags: Any) -> None:
    """Serve BASE, or every base in one process.

    \b
      readingroom serve          all bases: /mcp has every tool, /text/mcp one base, and so on
      readingroom serve text     that base alone, at /mcp, on the port of its contract
      readingroom serve --demo   the sample corpus: every answer is marked as such

    Without a key the server answers this machine only. Set MCP_API_KEY, or add keys with
    `readingroom keys add`, before you serve others. JOSH_AUTH opens the federal base to everybody
    or asks for OAuth tokens there.
    """
    from readingroom.server.observe.logging import configure
    from readingroom.server.observe.telemetry import start_tracing

    settings = load(flags)
    configure(settings.log_level)
    flush = start_tracing(settings.otel_endpoint)
    try:
        with sample_upstream(settings) as chosen:
            if chosen.sample:
                renew(chosen.data, reset)
            elif reset:
                raise click.UsageError("--reset empties the sample only: add --demo")
            _serve(base, chosen, as_json)
    finally:
        flush()


def _serve(base: str | None, settings: Settings, as_json: bool) -> None:
    from readingroom.commands.dispatch import COMMANDS
    from readingroom.server.app import Ownership, build_app
    from readingroom.server.auth.keys import Gate
    from readingroom.server.auth.policies import Guards
    from readingroom.server.run import bind, local_address, run
    from readingroom.storage.keys import KeyRing

    gate = Gate(revealed(settings.api_key), KeyRing(settings.data))
    _check_bind(settings, gate.closed or (base == "federal" and settings.josh_auth == "oauth"))
    names = [base] if base else sorted(OFFERS)
    port = OFFERS[base].port_in(settings) if base else ALL_PORT
    certificate = _certificate(settings)
    listener = bind(settings.host, port if settings.port is None else settings.port)
    address = local_address(listener, "https" if certificate else "http")
    with ExitStack() as held:
        key = secrets.token_urlsafe(32)
        owning = _take_folders(base, settings, address, key, held)
        bases = open_bases(names, settings)
        faces = (face_of(bases[0]),) if base else _all_faces(bases, settings, address)
        guards = Guards(faces, settings, gate)
        app = build_app(faces, settings, guards, Ownership(key, COMMANDS) if owning else None)
        announcement = _announcement(faces, address, settings, guards, as_json)

        def ready() -> None:
            click.echo(announcement)
            if settings.sample:
                load_in_background(settings, names, partial(_tell_loading, as_json))

        run(app, listener, certificate, settings.trusted_proxies, ready)


def _certificate(settings: Settings) -> "Certificate | None":
    from readingroom.server.run import Certificate

    match settings.tls_cert, settings.tls_key:
        case None, None:
            return None
        case Path() as chain, Path() as key:
            certificate = Certificate(chain, key)
            certificate.check()
            return certificate
    raise InvalidSetting("HTTPS needs both --tls-cert and --tls-key")


def _tell_loading(as_json: bool, sentence: str) -> None:
    """How far the sample has come: to whoever watches, else in the log. Never to one eye twice."""
    if as_json:
        logger.info(sentence)
    else:
        click.echo(sentence)


def _all_faces(
    bases: tuple[KnowledgeBase, ...], settings: Settings, address: str
) -> tuple[Face, ...]:
    return faces_of_all(bases, desk_of(bases, settings, settings.public_url or address))


def _check_bind(settings: Settings, guarded: bool) -> None:
    """Without a key, and without tokens before everything, nobody but this machine is served."""
    exposed = _exposed(settings)
    if not exposed or guarded:
        return
    if not settings.insecure:
        raise UnsafeBind(
            f"{exposed} can be reached by other machines and no key is set. Set MCP_API_KEY, "
            "add a key with `readingroom keys add NAME`, or pass --insecure."
        )
    logger.warning("Serving everybody who can reach %s: no key is set", exposed)


def _exposed(settings: Settings) -> str | None:
    """The address by which other machines reach us, directly or through a proxy; None if none."""
    from readingroom.server.http.addresses import is_loopback

    if not is_loopback(settings.host):
        return settings.host
    public = urlsplit(settings.public_url or "").hostname
    return settings.public_url if public and not is_loopback(public) else None


def _take_folders(
    base: str | None, settings: Settings, url: str, key: str, held: ExitStack
) -> bool:
    """Own the folders of the bases that need it, for as long as `held` stands."""
    from readingroom.storage.lock import FolderLock, Owner

    offers = {base: OFFERS[base]} if base else OFFERS | ROOM
    locked = [name for name, offer in offers.items() if offer.folder_locked]
    for name in locked:
        lock = FolderLock(settings.data / name)
        lock.acquire()
        held.callback(lock.release)
        lock.announce(Owner(url, key, os.getpid()))
    return bool(locked)


def _announcement(
    faces: tuple[Face, ...], listening: str, settings: Settings, guards: "Guards", as_json: bool
) -> str:
    from readingroom.server.pages.landing import Pages, client_configuration

    address = settings.public_url or listening
    if as_json:
        posture = {"listening": listening, "key_required": guards.gate.closed}
        return json.dumps(Pages(faces, settings, guards).addresses(address) | posture)
    postures = [guards.of_face(face).posture for face in faces]
    lines = [f"Reading Room {__version__} is answering on {address}", ""]
    lines += [
        f"  {face.server_name:<18} {posture:<6} {address}{face.path}/mcp{_also(face)}"
        for face, posture in zip(faces, postures, strict=True)
    ]
    lines += [f"  {'everything else':<18} {guards.rest.posture:<6} {address}/", ""]
    used = dict.fromkeys((*postures, guards.rest.posture))
    lines += [f"  {posture}: {_meaning(posture, settings)}" for posture in used]
    lines += ["", "Paste this into your client's configuration (.mcp.json):", ""]
    lines += [client_configuration(faces[0], address, postures[0] == "key"), ""]
    return "\n".join([*lines, "Press Ctrl-C to stop."])


def _also(face: Face) -> str:
    return f"   (SSE: {face.path}/sse)" if face.sse else ""


def _meaning(posture: "Posture", settings: Settings) -> str:
    if posture == "key":
        return "every request needs a key (Authorization: Bearer)"
    if posture == "oauth":
        return f"every request needs a token of {settings.josh_oauth_issuer}, or a named key"
    if _exposed(settings) is None:
        return "to this machine only"
    return "TO EVERYBODY who can reach this address, without a key"
