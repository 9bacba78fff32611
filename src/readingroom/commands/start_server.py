"""Starts the server: checks what it is bound to, owns its folders, and announces it."""

import json
import logging
import os
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import click
from starlette.applications import Starlette

from readingroom import __version__
from readingroom.bases import BASES, open_bases
from readingroom.commands.errors import UnsafeBind
from readingroom.commands.sample import load_sample_in_background
from readingroom.core.errors import InvalidSetting
from readingroom.core.settings import reveal_secret
from readingroom.federation.room import FEDERATION_SPEC, make_federated_base
from readingroom.protocol.command import Command
from readingroom.protocol.spec import BaseSpec, KnowledgeBase
from readingroom.server.app import AdminAccess, build_app
from readingroom.server.auth.bearer import AccessKind, KeyAuth
from readingroom.server.auth.policies import AuthPolicies
from readingroom.server.faces import Face, make_face, make_faces
from readingroom.server.http.addresses import is_loopback
from readingroom.server.observe.telemetry import start_tracing
from readingroom.server.pages.landing import LandingPages, format_client_configuration
from readingroom.server.run import TlsCertificate, bind_listener, format_local_address, run_server
from readingroom.server.settings import MIN_KEY_CHARS, ServerSettings
from readingroom.storage.lock import FolderLock, FolderOwner
from readingroom.storage.postgres.keys import open_keys
from readingroom.storage.postgres.state import open_grant_store

logger = logging.getLogger(__name__)


def start_server(only_base_spec: BaseSpec | None, settings: ServerSettings, as_json: bool) -> None:
    """Serve a base, or all of them, until a signal ends it. Raise `UnsafeBind`, `FolderInUse`."""
    flush_spans = start_tracing(settings.otel_endpoint)
    try:
        _serve_bases(only_base_spec, settings, as_json)
    finally:
        flush_spans()


def _serve_bases(only_base_spec: BaseSpec | None, settings: ServerSettings, as_json: bool) -> None:
    key_auth = KeyAuth(
        reveal_secret(settings.api_key),
        open_keys(settings),
        open_grant_store(settings) if settings.connectors else None,
    )
    requires_oauth_token = (
        only_base_spec is not None
        and only_base_spec.follows_josh_auth
        and settings.josh_auth == "oauth"
    )
    _check_bind_is_safe(settings, key_auth.is_required or requires_oauth_token)
    _warn_of_short_key(settings)
    _warn_of_no_key_left(settings, key_auth)
    server_port = (only_base_spec or FEDERATION_SPEC).get_default_port(settings)
    tls_certificate = _load_certificate(settings)
    # Before the bases are opened, which takes a while: a busy port is reported at once.
    listener = bind_listener(settings.host, server_port if settings.port is None else settings.port)
    local_address = format_local_address(listener, "https" if tls_certificate else "http")
    base_specs = [only_base_spec] if only_base_spec else [*BASES.values(), FEDERATION_SPEC]
    base_names = [only_base_spec.name] if only_base_spec else sorted(BASES)
    with ExitStack() as lock_stack:
        # For the admin route: a new one in each run, known to whoever may read the owner's file.
        admin_key = secrets.token_urlsafe(32)
        owns_any_folder = _lock_base_folders(
            base_specs, settings, FolderOwner(local_address, admin_key, os.getpid()), lock_stack
        )

        def open_app() -> tuple[Starlette, Callable[[], None]]:
            opened_bases = open_bases(base_names, settings)
            server_faces = (
                (make_face(opened_bases[0]),)
                if only_base_spec
                else _make_faces(opened_bases, settings, local_address)
            )
            auth_policies = AuthPolicies(server_faces, settings, key_auth)
            admin_access = (
                AdminAccess(admin_key, _import_owner_commands(base_specs))
                if owns_any_folder
                else None
            )
            announcement_text = _format_announcement(
                server_faces, local_address, settings, auth_policies, as_json
            )
            room_app = build_app(server_faces, settings, auth_policies, admin_access)
            return room_app, partial(
                _announce_ready, announcement_text, settings, base_names, as_json
            )

        run_server(open_app, listener, tls_certificate, settings.trusted_proxies)


def _import_owner_commands(base_specs: list[BaseSpec]) -> dict[str, type[Command]]:
    """Return the commands that an owner of these bases runs for other processes, by name."""
    command_types = [
        command_type
        for base_spec in base_specs
        if base_spec.commands
        for command_type in base_spec.commands.import_value()
    ]
    return {command_type.name: command_type for command_type in command_types}


def _lock_base_folders(
    base_specs: list[BaseSpec],
    settings: ServerSettings,
    folder_owner: FolderOwner,
    lock_stack: ExitStack,
) -> bool:
    """Own the folders of bases that need it until `lock_stack` is closed; return whether any do.

    Raise `FolderInUse` when another process owns one.
    """
    locked_base_names = [
        base_spec.name for base_spec in base_specs if base_spec.needs_folder_lock(settings)
    ]
    for base_name in locked_base_names:
        folder_lock = FolderLock(settings.data / base_name)
        folder_lock.acquire()
        lock_stack.callback(folder_lock.release)
        folder_lock.write_folder_owner(folder_owner)
    return bool(locked_base_names)


def _load_certificate(settings: ServerSettings) -> TlsCertificate | None:
    match settings.tls_cert, settings.tls_key:
        case None, None:
            return None
        case Path() as chain_path, Path() as key_path:
            tls_certificate = TlsCertificate(chain_path, key_path)
            tls_certificate.check_pair()
            return tls_certificate
    raise InvalidSetting("HTTPS needs both --tls-cert and --tls-key")


def _announce_ready(
    announcement_text: str, settings: ServerSettings, base_names: list[str], as_json: bool
) -> None:
    """Show where the server answers; then load what is missing of the sample, if it serves that."""
    click.echo(announcement_text)
    if settings.is_sample:
        load_sample_in_background(settings, base_names, partial(_announce_sample_progress, as_json))


def _announce_sample_progress(as_json: bool, progress_sentence: str) -> None:
    """Show how far the sample has come: to whoever watches, else in the log; never twice."""
    if as_json:
        logger.info(progress_sentence)
    else:
        click.echo(progress_sentence)


def _make_faces(
    opened_bases: tuple[KnowledgeBase, ...], settings: ServerSettings, server_address: str
) -> tuple[Face, ...]:
    desk_base = make_federated_base(opened_bases, settings, settings.public_url or server_address)
    return make_faces(opened_bases, desk_base, settings.face_tools)


def _check_bind_is_safe(settings: ServerSettings, is_access_restricted: bool) -> None:
    """Raise `UnsafeBind` when other machines could call without a key or a token."""
    exposed_address = _find_exposed_address(settings)
    if not exposed_address or is_access_restricted:
        return
    if not settings.insecure:
        raise UnsafeBind(
            f"{exposed_address} can be reached by other machines and no key is set. Set "
            "MCP_API_KEY, add a key with `readingroom keys add NAME`, or pass --insecure."
        )
    logger.warning("Serving everybody who can reach %s: no key is set", exposed_address)


def _warn_of_short_key(settings: ServerSettings) -> None:
    api_key = reveal_secret(settings.api_key)
    if api_key and len(api_key) < MIN_KEY_CHARS:
        logger.warning(
            "MCP_API_KEY has fewer than %d characters and can be guessed; make one with "
            "`openssl rand -hex 32`, or named keys with `readingroom keys add`",
            MIN_KEY_CHARS,
        )


def _warn_of_no_key_left(settings: ServerSettings, key_auth: KeyAuth) -> None:
    if key_auth.is_required and settings.api_key is None and not key_auth.key_ring.has_keys():
        logger.warning(
            "Every key of this room is revoked, so nobody is let in: make one with `readingroom "
            "keys add NAME`, or let it be open to this machine with `readingroom keys reopen` and "
            "start again"
        )


def _find_exposed_address(settings: ServerSettings) -> str | None:
    """Return the address by which other machines reach us, directly or by a proxy, if any."""
    if not is_loopback(settings.host):
        return settings.host
    public_host = urlsplit(settings.public_url or "").hostname
    return settings.public_url if public_host and not is_loopback(public_host) else None


def _format_announcement(
    server_faces: tuple[Face, ...],
    local_address: str,
    settings: ServerSettings,
    auth_policies: AuthPolicies,
    as_json: bool,
) -> str:
    shown_address = settings.public_url or local_address
    if as_json:
        detail_fields = {
            "listening": local_address,
            "key_required": auth_policies.key_auth.is_required,
        }
        return json.dumps(
            LandingPages(server_faces, settings, auth_policies).build_server_index(shown_address)
            | detail_fields
        )
    access_of_each_face = [
        auth_policies.get_face_policy(server_face).access for server_face in server_faces
    ]
    announcement_lines = [f"Reading Room {__version__} is answering on {shown_address}", ""]
    announcement_lines += [
        f"  {server_face.server_name:<18} {face_access:<6} "
        f"{shown_address}{server_face.path}/mcp{_format_sse_note(server_face)}"
        for server_face, face_access in zip(server_faces, access_of_each_face, strict=True)
    ]
    announcement_lines += [
        f"  {'everything else':<18} {auth_policies.default_policy.access:<6} {shown_address}/",
        "",
    ]
    access_kinds = dict.fromkeys((*access_of_each_face, auth_policies.default_policy.access))
    announcement_lines += [
        f"  {face_access}: {_describe_access(face_access, settings)}"
        for face_access in access_kinds
    ]
    announcement_lines += ["", "Paste this into your client's configuration (.mcp.json):", ""]
    announcement_lines += [
        format_client_configuration(
            server_faces[0], shown_address, access_of_each_face[0] == "key"
        ),
        "",
    ]
    return "\n".join([*announcement_lines, "Press Ctrl-C to stop."])


def _format_sse_note(server_face: Face) -> str:
    return f"   (SSE: {server_face.path}/sse)" if server_face.serves_sse else ""


def _describe_access(face_access: AccessKind, settings: ServerSettings) -> str:
    if face_access == "key":
        return "every request needs a key (Authorization: Bearer)"
    if face_access == "oauth":
        return f"every request needs a token of {settings.josh_oauth_issuer}, or a named key"
    if _find_exposed_address(settings) is None:
        return "to this machine only"
    return "TO EVERYBODY who can reach this address, without a key"
