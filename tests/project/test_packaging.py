"""What others install: the wheel, the image, the service, the bundle. No container runs here, so
the image's files are held to their rules by reading them.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner
from compose_spec import PyCompose
from mcp import Client, StdioServerParameters, stdio_client

from readingroom import __version__
from readingroom.cli import main
from readingroom.core.settings import get_variable_name
from readingroom.engine.embedding.cross_encoder.reranker import ADAPTER_DIGEST
from readingroom.settings import Settings
from readingroom.storage.files import hash_file
from scripts.bundle import list_contents, pack
from tests.requirements import requirement
from tests.support.kit import clean_environment, read_body
from tests.support.postgres import PostgresServer

ROOT = Path(__file__).parents[2]
OURS = re.compile(r"(?:READINGROOM|CHROMA|MCP|REDIS|KB)_\w+")


# --- the wheel ---


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, installed beside the packages that the lock names and nothing of this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    venv.create(folder / "venv", with_pip=False)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    locked = Path(next(path for path in sys.path if path.endswith("site-packages")))
    (site / "locked.pth").write_text(f"{locked}\n")  # its own .pth files are not read: no src/
    (wheel,) = folder.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "venv"), "install", "-q"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)
    return folder / "venv" / "bin"


def _leave_out_our_source() -> dict[str, str]:
    """An environment for the wheel alone: in a worktree the tests run with a PYTHONPATH."""
    return {name: value for name, value in clean_environment().items() if name != "PYTHONPATH"}


@requirement("room:packages")
@pytest.mark.slow
@pytest.mark.anyio
async def test_the_wheel_answers_over_stdio(installed: Path) -> None:
    started = StdioServerParameters(
        command=str(installed / "readingroom"), args=["stdio", "text"], env=_leave_out_our_source()
    )
    async with Client(stdio_client(started)) as client:
        assert read_body(await client.call_tool("get_kb_info", {}))["status"] == "available"


@requirement("room:packages")
@pytest.mark.slow
def test_the_wheel_works_by_itself(installed: Path, tmp_path: Path) -> None:
    program = installed / "readingroom"
    where = [installed / "python", "-c", "import readingroom; print(readingroom.__file__)"]
    env = _leave_out_our_source()
    found = subprocess.run(where, capture_output=True, text=True, check=True, cwd=tmp_path, env=env)
    assert Path(found.stdout).is_relative_to(installed.parent)
    shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=True, env=env)
    assert "readingroom serve" in shown.stdout


@requirement("room:packages")
@pytest.mark.slow
def test_the_wheel_brings_its_sample_with_it(installed: Path, tmp_path: Path) -> None:
    ask = (
        "from readingroom.demo.corpus import compute_corpus_digest; print(compute_corpus_digest())"
    )
    there = subprocess.run(
        [installed / "python", "-c", ask],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=_leave_out_our_source(),
    )
    from readingroom.demo.corpus import compute_corpus_digest

    assert there.stdout.strip() == compute_corpus_digest()


@requirement("room:packages")
@pytest.mark.slow
def test_the_wheel_brings_the_adapter_with_it(installed: Path) -> None:
    (adapter_file,) = installed.parent.glob("lib/**/cross_encoder/adapter.safetensors")
    assert hash_file(adapter_file) == ADAPTER_DIGEST


# --- the image ---


def read_instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions in order, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines()]


def read_last_stage() -> list[tuple[str, str]]:
    found = read_instructions()
    start = max(index for index, (name, _) in enumerate(found) if name == "FROM")
    return found[start:]


@requirement("room:packages")
def test_the_image_runs_as_nobody_special_and_says_how_it_is() -> None:
    shipped = dict(read_last_stage())
    user, group = shipped["USER"].split(":")
    assert int(user) and int(group)
    made = next(what for name, what in read_last_stage() if name == "RUN")
    assert f"--uid {user} " in made and "-o readingroom" in made and "/data" in made
    variables = dict(
        one.split("=", 1)
        for name, what in read_last_stage()
        if name == "ENV"
        for one in shlex.split(what)
    )
    assert shipped["EXPOSE"] == variables["READINGROOM_PORT"]
    assert f"127.0.0.1:{shipped['EXPOSE']}/health" in shipped["HEALTHCHECK"]
    assert variables["READINGROOM_MODELS_DIR"] in [
        what.split()[-1] for name, what in read_last_stage() if name == "COPY"
    ]
    assert all(
        variables[name].startswith(shipped["VOLUME"])
        for name in ("READINGROOM_DATA", "CHROMA_PERSIST_DIR")
    )
    assert json.loads(shipped["ENTRYPOINT"]) == ["readingroom"]
    arguments = json.loads(shipped["CMD"])
    assert CliRunner().invoke(main, [*arguments, "--help"]).exit_code == 0
    bases = [what.split()[0] for name, what in read_instructions() if name == "FROM"]
    stages = {what.split()[-1] for name, what in read_instructions() if " AS " in what}
    assert all(":" in base or base in stages for base in bases)
    assert not any(base.endswith(":latest") for base in bases)


@requirement("room:packages")
def test_the_image_is_made_of_what_is_locked_and_what_exists() -> None:
    installs = [
        what for name, what in read_instructions() if name == "RUN" and "pip install" in what
    ]
    assert all("--no-deps" in one for one in installs)
    assert "--require-hashes -r requirements.lock" in installs[0]
    for name, what in read_instructions():
        if name == "COPY" and not what.startswith("--from"):
            *sources, _ = what.split()
            assert all((ROOT / source).exists() for source in sources), what
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert {f"!{source}" for source in ("src", "requirements.lock", "pyproject.toml")} <= set(
        ignored
    )


@requirement("room:packages")
def test_the_parts_of_the_image_stay_under_a_gigabyte() -> None:
    """Python and Debian 130 MB, tesseract 45 MB, the model as it is run 91 MB, and the packages."""
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    names = set(re.findall(r"^([\w.-]+)==", lock, re.M))
    assert "kubernetes" not in names
    assert "torch" not in names
    assert 130 + 45 + 91 + sum(map(_megabytes, names)) < 1000


def _megabytes(name: str) -> float:
    try:
        files = metadata.files(name) or []
    except metadata.PackageNotFoundError:  # for another system or another Python
        return 0
    paths = [Path(str(file.locate())) for file in files]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def list_variables() -> set[str]:
    return {get_variable_name(field) for field in Settings.model_fields.values()}


@requirement("room:packages")
@pytest.mark.parametrize(
    "file", ["Dockerfile", "compose.yaml", "deploy/systemd/readingroom.service"]
)
def test_only_settings_that_exist_are_set(file: str) -> None:
    named = set(OURS.findall((ROOT / file).read_text("utf-8")))
    assert named
    assert named <= list_variables()


@requirement("room:packages")
def test_compose_bounds_the_memory_and_keeps_the_registry() -> None:
    compose: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    room, valkey = compose["services"]["readingroom"], compose["services"]["valkey"]
    assert room["mem_limit"] == "2g"
    assert room["read_only"] and room["cap_drop"] == ["ALL"]
    assert room["environment"]["REDIS_URL"].startswith("redis://valkey:")
    assert room["environment"]["MCP_API_KEY"].startswith("${MCP_API_KEY:?")
    assert all(port.startswith("127.0.0.1:") for port in room["ports"])
    command = valkey["command"]
    assert command[command.index("--maxmemory-policy") + 1] == "noeviction"
    assert command[command.index("--appendonly") + 1] == "yes"
    mounted = {volume.split(":")[0] for one in (room, valkey) for volume in one["volumes"]}
    assert mounted == set(compose["volumes"])


@requirement("room:packages")
def test_compose_keeps_large_files_out_of_memory_and_each_container_to_itself() -> None:
    compose: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    room, valkey = compose["services"]["readingroom"], compose["services"]["valkey"]
    assert room["environment"]["TMPDIR"] == "/data/tmp"
    assert "room:/data" in room["volumes"]
    for container in (room, valkey):
        (tmpfs,) = container["tmpfs"]
        assert re.match(r"/tmp:size=(256|16)m\b", tmpfs)
        assert container["pids_limit"] <= 512
        assert container["read_only"]
        assert container["cap_drop"] == ["ALL"]
        assert container["security_opt"] == ["no-new-privileges:true"]
    assert valkey["networks"] == ["registry"]
    assert compose["networks"]["registry"] == {"internal": True}
    assert "ports" not in valkey


# --- the service ---


def read_unit_settings() -> Iterator[tuple[str, str]]:
    for line in (ROOT / "deploy/systemd/readingroom.service").read_text("utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield name, value


@requirement("room:packages")
def test_the_service_starts_a_command_that_exists_and_is_confined(tmp_path: Path) -> None:
    settings = dict(read_unit_settings())
    program, *arguments = shlex.split(settings["ExecStart"])
    assert Path(program).name == "readingroom"
    assert CliRunner().invoke(main, [*arguments, "--help"]).exit_code == 0
    confined = ("NoNewPrivileges", "PrivateTmp", "ProtectHome")
    assert [settings[name] for name in confined] == ["yes"] * 3
    assert settings["User"] == settings["Group"] == "readingroom"
    assert settings["ProtectSystem"] == "strict"
    assert settings["Environment"] == f"READINGROOM_DATA=/var/lib/{settings['StateDirectory']}"


@requirement("room:packages")
def test_the_service_lets_readers_of_documents_confine_themselves() -> None:
    lines = [*read_unit_settings()]
    allowed = {
        call for name, value in lines if name == "SystemCallFilter" for call in value.split()
    }
    landlock = {f"landlock_{call}" for call in ("create_ruleset", "add_rule", "restrict_self")}
    assert allowed >= {"@system-service", "seccomp", *landlock}
    settings = dict(lines)
    assert settings["SystemCallErrorNumber"] == "EPERM"
    assert settings["ProtectProc"] == "invisible"
    restricted = ("ProtectKernelLogs", "ProtectHostname", "RestrictRealtime")
    assert [settings[name] for name in restricted] == ["yes"] * 3
    assert int(settings["TasksMax"]) <= 512


@requirement("room:packages")
def test_systemd_understands_the_service(tmp_path: Path) -> None:
    """Where systemd is; elsewhere the test above is all there is."""
    text = (ROOT / "deploy/systemd/readingroom.service").read_text("utf-8")
    copy = tmp_path / "readingroom.service"
    copy.write_text(text.replace("/opt/readingroom/bin/readingroom", sys.executable))
    if shutil.which("systemd-analyze"):
        verify = ["systemd-analyze", "verify", copy]
        checked = subprocess.run(verify, capture_output=True, text=True)
        assert copy.name not in checked.stderr, checked.stderr


# --- the bundle for Claude Desktop ---


@requirement("room:packages")
def test_the_bundle_has_a_manifest_that_leads_to_a_server(tmp_path: Path) -> None:
    target = tmp_path / "readingroom.mcpb"
    pack(target)
    with zipfile.ZipFile(target) as bundle:
        names = set(bundle.namelist())
        manifest = json.loads(bundle.read("manifest.json"))
    assert manifest["version"] == __version__
    assert manifest["server"]["entry_point"] in names
    assert "pyproject.toml" in names
    configuration = manifest["server"]["mcp_config"]
    arguments = configuration["args"][configuration["args"].index("readingroom") + 1 :]
    chosen = [one.replace("${user_config.base}", "guidance") for one in arguments]
    assert CliRunner().invoke(main, [*chosen, "--help"]).exit_code == 0
    assert set(configuration["env"]) <= list_variables()
    placeholders = set(re.findall(r"\$\{user_config\.(\w+)\}", json.dumps(manifest)))
    assert placeholders == set(manifest["user_config"])
    pack(tmp_path / "again.mcpb")
    assert (tmp_path / "again.mcpb").read_bytes() == target.read_bytes()
    assert len(names) == len(list(list_contents()))


def test_the_files_for_several_processes_name_settings_that_exist() -> None:
    """No test runs them: a container engine is not part of what the tests need."""
    compose = yaml.safe_load((ROOT / "compose.scale.yaml").read_text("utf-8"))
    deployment, service = yaml.safe_load_all(
        (ROOT / "deploy" / "kubernetes" / "policy.yaml").read_text("utf-8")
    )
    known = {get_variable_name(field) for field in Settings.model_fields.values()}
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    named = {variable["name"] for variable in container["env"]}
    for base in ("policy", "documents"):
        named |= set(compose["services"][base]["environment"]) - {"TMPDIR"}
        assert compose["services"][base]["command"][:2] == ["serve", base]
    assert named <= known
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert "ARG POSTGRES" in (ROOT / "Dockerfile").read_text("utf-8")


@pytest.mark.parametrize("file", ["compose.yaml", "compose.scale.yaml"])
def test_compose_files_say_what_compose_understands(file: str) -> None:
    compose = yaml.safe_load((ROOT / file).read_text("utf-8"))
    PyCompose.from_yaml(yaml.safe_dump(compose)).validate()
    next(iter(compose["services"].values()))["dependz_on"] = ["database"]
    with pytest.raises(ValueError, match="dependz_on"):
        PyCompose.from_yaml(yaml.safe_dump(compose))


def test_manifests_fit_the_schemas_of_kubernetes() -> None:
    manifests = (ROOT / "deploy" / "kubernetes").glob("*.yaml")
    resources = [
        resource for path in manifests for resource in yaml.safe_load_all(path.read_text("utf-8"))
    ]
    assert [resource["kind"] for resource in resources] == ["Deployment", "Service"]
    for resource in resources:
        kubernetes_validate.validate(resource, "1.37", strict=True)
        resource["spec"]["selectr"] = {}
        with pytest.raises(kubernetes_validate.ValidationError, match="selectr"):
            kubernetes_validate.validate(resource, "1.37", strict=True)


def test_the_script_for_a_standby_says_what_postgresql_understands(
    postgres: PostgresServer,
) -> None:
    """It runs inside an image that is not here; what it tells the server is tried."""
    compose = yaml.safe_load((ROOT / "compose.scale.yaml").read_text("utf-8"))
    (mounted,) = [
        volume for volume in compose["services"]["database"]["volumes"] if "standby.sh" in volume
    ]
    script = (ROOT / mounted.split(":")[0]).read_text("utf-8")
    statements = re.findall(r'-c "([^"]+)"', script)
    assert len(statements) == 2
    try:
        for statement in statements:
            postgres.execute(statement)
    finally:
        for statement in statements:
            name = statement.split()[3]
            postgres.execute(f"ALTER SYSTEM RESET {name}")
    # The standby is called what the commits wait for.
    (command,) = compose["services"]["standby"]["command"][2:]
    assert "application_name=standby" in command and "(standby)" in statements[1]
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
