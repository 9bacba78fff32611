"""Where a setting comes from, and what a bad one is told."""

from pathlib import Path

import pytest

from readingroom.core.errors import InvalidSetting
from readingroom.core.settings import reveal_secret
from readingroom.settings import Settings, load_settings
from tests.requirements import requirement
from tests.support.kit import run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "readingroom.toml").write_text('port = 1111\nrate_limit = 7\nhost = "::1"\n')
    return tmp_path


@requirement("room:settings")
def test_a_flag_beats_the_environment_beats_the_file_beats_the_default(data: Path) -> None:
    environment = {"READINGROOM_DATA": str(data), "READINGROOM_PORT": "2222"}
    assert load_settings({"port": 3333}, environment).port == 3333
    assert load_settings({"port": None}, environment).port == 2222
    assert load_settings({}, {"READINGROOM_DATA": str(data)}).port == 1111
    assert load_settings({}, {"READINGROOM_DATA": str(data.parent)}).port is None


@requirement("room:settings")
def test_sources_are_merged_setting_by_setting(data: Path) -> None:
    settings = load_settings(
        {"data": str(data), "read_only": True}, {"READINGROOM_RATE_LIMIT": "9"}
    )
    assert (settings.read_only, settings.rate_limit, settings.host) == (True, 9, "::1")


@requirement("room:settings")
def test_an_empty_variable_is_not_set(data: Path) -> None:
    settings = load_settings({"data": data}, {"READINGROOM_PORT": "", "MCP_API_KEY": ""})
    assert (settings.port, settings.api_key) == (1111, None)


@requirement("room:settings")
def test_lists_are_written_with_commas(tmp_path: Path) -> None:
    environment = {"READINGROOM_ALLOWED_HOSTS": " a.example , b.example:8443 ,"}
    assert load_settings({"data": tmp_path}, environment).allowed_hosts == (
        "a.example",
        "b.example:8443",
    )


@requirement("room:settings")
def test_the_data_directory_is_the_users_own_by_default() -> None:
    assert load_settings({}, {}).data.name == "readingroom"
    assert load_settings({}, {}).data.is_absolute()


@pytest.mark.parametrize(
    ("flags", "environment", "written", "told"),
    [
        ({"port": 70000}, {}, "", "--port: "),
        ({}, {"READINGROOM_PORT": "abc"}, "", "READINGROOM_PORT: "),
        ({}, {"READINGROOM_PUBLIC_URL": "room.example"}, "", "READINGROOM_PUBLIC_URL: "),
        ({}, {"READINGROOM_RATE_LIMIT": "-1"}, "", "READINGROOM_RATE_LIMIT: "),
        ({}, {"READINGROOM_SESSION_IDLE_SECONDS": "nan"}, "", "READINGROOM_SESSION_IDLE_SECONDS"),
        ({}, {}, 'log_level = "loud"', "readingroom.toml: log_level: "),
        ({}, {}, "not toml at all", "cannot be read as TOML"),
        ({}, {}, "no_such_setting = 1", "readingroom.toml: no_such_setting: "),
        ({}, {}, 'data = "/elsewhere"', "`data` cannot be set here"),
    ],
)
def test_a_bad_value_is_named_the_way_its_author_wrote_it(
    tmp_path: Path,
    flags: dict[str, object],
    environment: dict[str, str],
    written: str,
    told: str,
) -> None:
    (tmp_path / "readingroom.toml").write_text(written)
    with pytest.raises(InvalidSetting) as refused:
        load_settings({"data": tmp_path, **flags}, environment)
    assert told in refused.value.message


def test_a_bad_setting_ends_the_command_with_two_and_a_sentence(tmp_path: Path) -> None:
    result = run("serve", "--data", str(tmp_path), env={"READINGROOM_PORT": "abc"})
    assert result.returncode == 2
    assert result.stderr.startswith("Error: READINGROOM_PORT: ")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("doctor",),
        ("serve",),
        ("keys", "list"),
        ("policy", "list"),
        ("documents", "list"),
        ("federal", "status"),
        ("backup", "room.backup"),
        ("migrate", "--to", "postgresql://nobody@127.0.0.1:1/room"),
        ("embed-worker",),
    ],
    ids=" ".join,
)
def test_a_database_of_blanks_is_refused_by_every_command(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    env = {"READINGROOM_DATABASE_URL": " \n"}
    result = run(*command, "--data", str(tmp_path / "data"), env=env)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: READINGROOM_DATABASE_URL: ")
    assert "only blanks" in result.stderr and "postgresql://user" in result.stderr
    assert not (tmp_path / "data").exists()


def test_blanks_around_the_url_of_a_database_are_none_of_it(tmp_path: Path) -> None:
    environment = {"READINGROOM_DATABASE_URL": " postgresql://me@host/room\n"}
    settings = load_settings({"data": tmp_path}, environment)
    assert reveal_secret(settings.database_url) == "postgresql://me@host/room"
    (tmp_path / "readingroom.toml").write_text('database_url = ""')
    assert load_settings({"data": tmp_path}, {}).database_url is None


def test_the_key_does_not_show_in_the_settings(tmp_path: Path) -> None:
    assert "sesame" not in repr(load_settings({"data": tmp_path}, {"MCP_API_KEY": "sesame"}))


def test_every_setting_has_a_variable_and_a_sentence() -> None:
    for field in Settings.model_fields.values():
        assert field.description
        assert field.description.endswith(".")
