"""HTTPS without a proxy, and behind one."""

import signal
import socket
import ssl
from contextlib import ExitStack
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from readingroom.core import clock
from tests.requirements import requirement
from tests.support.kit import HANG_SECONDS, run, serve_room

pytestmark = pytest.mark.anyio

NAME = "room.example.org"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for this machine that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    told = [x509.DNSName(NAME), x509.IPAddress(ip_address("127.0.0.1"))]
    chain = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(clock.now() - timedelta(days=1))
        .not_valid_after(clock.now() + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(told), critical=False)
        .sign(secret, hashes.SHA256())
    )
    cert, key = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(chain.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        secret.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return cert, key


@requirement("federal:tls")
async def test_a_client_that_trusts_the_certificate_is_served_over_https(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    cert, key = pair
    data = tmp_path / "data"
    flags = ("federal", "--tls-cert", str(cert), "--tls-key", str(key))
    with serve_room(*flags, data=data) as served:
        assert served.url.startswith("https://127.0.0.1:")
        trusting = ssl.create_default_context(cafile=str(cert))
        async with (
            httpx2.AsyncClient(verify=trusting, timeout=HANG_SECONDS, trust_env=False) as web,
            Client(streamable_http_client(served.url + "/mcp", http_client=web)) as client,
        ):
            assert "get_bill" in {tool.name for tool in (await client.list_tools()).tools}
            told = (await web.get(served.url + "/.well-known/oauth-protected-resource")).json()
            assert told["resource"].startswith(served.url)
        with pytest.raises(httpx2.ConnectError, match="certificate"):
            httpx2.get(served.url + "/health", timeout=HANG_SECONDS, trust_env=False)


async def test_commands_reach_a_server_of_https(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    cert, key = pair
    data = tmp_path / "data"
    flags = ("documents", "--tls-cert", str(cert), "--tls-key", str(key))
    with serve_room(*flags, data=data):
        told = run("documents", "list", "--data", str(data), "--json")
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--tls-cert", "cert.pem"], "needs both --tls-cert and --tls-key"),
        (
            ["--tls-cert", "cert.pem", "--tls-key", "missing.pem"],
            "not a matching certificate and key",
        ),
    ],
)
def test_half_a_pair_is_refused_with_what_is_missing(
    tmp_path: Path, flags: list[str], words: str
) -> None:
    told = run("serve", "text", "--port", "0", "--data", str(tmp_path), *flags)
    assert told.returncode != 0
    assert words in told.stderr
    assert "Traceback" not in told.stderr


@requirement("federal:tls")
async def test_behind_a_proxy_the_public_address_stands_where_clients_read_it(
    tmp_path: Path,
) -> None:
    env = {"READINGROOM_PUBLIC_URL": f"https://{NAME}", "MCP_API_KEY": "a" * 32}
    with serve_room("federal", data=tmp_path / "data", env=env) as served:
        path = served.url + "/.well-known/oauth-protected-resource"
        told = httpx2.get(
            path, headers={"Host": NAME}, timeout=HANG_SECONDS, trust_env=False
        ).json()
    assert told["resource"].startswith(f"https://{NAME}")


@requirement("room:connections")
async def test_handshakes_that_never_end_shut_nobody_out(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    cert, key = pair
    flags = ("--tls-cert", str(cert), "--tls-key", str(key))
    with (
        serve_room("text", *flags, data=tmp_path / "data", max_descriptors=1024) as served,
        ExitStack() as held,
    ):
        port = int(served.url.rpartition(":")[2])
        # Stopped, it finds them all at once, as a busy one may.
        served.process.send_signal(signal.SIGSTOP)
        for _ in range(1000):
            held.enter_context(socket.create_connection(("127.0.0.1", port)))
        served.process.send_signal(signal.SIGCONT)
        for _ in range(500):
            held.enter_context(socket.create_connection(("127.0.0.1", port)))
        answer = httpx2.get(
            f"{served.url}/health",
            verify=ssl.create_default_context(cafile=cert),
            timeout=HANG_SECONDS,
            trust_env=False,
        )
    assert answer.status_code == 200
    assert [line for line in served.lines() if "Too many" in line["message"]]
    assert not [line for line in served.lines() if line["level"] == "ERROR"]
