"""Tests the output of `trainyard env` in shells: with variables that are set already, and evaluated
more than once."""

import subprocess
from collections.abc import Iterator

import pytest

from tests import trainyard_server
from tests.trainyard_server import Server

SHELLS = ["sh", "bash"]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Starts a server with a data directory whose name a shell would split."""
    server = trainyard_server.Server(tmp_path_factory.mktemp("yard") / 'it\'s a "$(false)" dir', "")
    server.start()
    yield server
    server.clean()


def evaluated(server: Server, shell: str, before: str = "", times: int = 1) -> dict[str, str]:
    line = (
        before + '\nyard=$("$0" env --data "$1") || exit 1\n' + 'eval "$yard"\n' * times + "env -0"
    )
    done = subprocess.run(
        [shell, "-eu", "-c", line, trainyard_server.PROGRAM, server.data],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return dict(pair.split("=", 1) for pair in done.stdout.split("\0") if pair)


@pytest.mark.parametrize("shell", SHELLS)
def test_any_name_survives_the_shell(odd: Server, shell: str) -> None:
    found = evaluated(odd, shell)
    assert found["AWS_CA_BUNDLE"] == odd.data + "/tls/ca.pem"
    assert found["AWS_ENDPOINT_URL"] == "http://" + odd.listen
    assert found["NO_PROXY"] == found["no_proxy"] == "127.0.0.1"


@pytest.mark.parametrize("shell", SHELLS)
def test_evaluating_the_text_twice_has_no_further_effect(odd: Server, shell: str) -> None:
    before = (
        "export NO_PROXY=corp.lan AWS_SESSION_TOKEN=old AWS_PROFILE=work"
        " AWS_ENDPOINT_URL_STS=https://elsewhere AWS_USE_FIPS_ENDPOINT=true"
    )
    once, twice = evaluated(odd, shell, before), evaluated(odd, shell, before, times=2)
    assert once == twice
    assert once["NO_PROXY"] == once["no_proxy"] == "corp.lan,127.0.0.1"
    assert not {
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_ENDPOINT_URL_STS",
        "AWS_USE_FIPS_ENDPOINT",
    } & set(once)


@pytest.mark.parametrize("region", ["us-east-1", "eu-west-1", "us-local-1", "local", "yard-7"])
def test_old_clients_find_every_region(odd: Server, region: str) -> None:
    """Clients find regions only through endpoints.json, like the STS hosts that SDKs build."""
    before = (
        "export AWS_MAX_ATTEMPTS=1"
        f" HOME='{odd.data.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}'"
    )
    line = (
        before
        + '\neval "$("$0" env --data "$1")"\nunset AWS_ENDPOINT_URL\nexec /usr/bin/aws --region'
        ' "$2" sts get-caller-identity --query Arn --output text'
    )
    done = subprocess.run(
        ["sh", "-eu", "-c", line, trainyard_server.PROGRAM, odd.data, region],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and ":assumed-role/TrainyardOwner/owner" in done.stdout, done.stderr
