"""Tests that errors of the configuration and of the command line name the wrong key or option."""

import pathlib
import subprocess

import pytest

from tests import trainyard_server
from tests.command_line import CommandLine
from tests.trainyard_server import Server

SETTINGS = {
    "[jobs]\nstop_grace_seconds = 'x'\n": "jobs.stop_grace_seconds must be a whole number",
    "[jobs]\nstop_grace_secnds = 3\n": "unknown key 'stop_grace_secnds' in jobs; did you mean"
    " stop_grace_seconds?",
    "quotas = []\n": "unknown key 'quotas'; did you mean quota?",
    "account_id = 12\n": "account_id must be a string",
    "[[machine]]\nname = 'box'\ncpus = 'two'\n": "machine[0].cpus must be a number",
    "[jobs]\ndevices = ['foo']\n": 'jobs.devices: "foo" must be a device file below /dev',
    "[regions.'EU west']\n": 'regions."EU west" must be named by small letters, digits and -',
    "[[access_key]]\nuser = 'x'\n": "access_key[0].id and secret must both be given",
    "[prices]\nlist = 3\n": "prices.list must be true or false",
    "[server]\nlisten = 'nowhere'\n": "server.listen: invalid address 'nowhere'",
    "[server]\nmetrics_listen = '1.2.3.4:99999'\n": "server.metrics_listen: invalid address",
    "[objects]\nendpoint = 'ftp://x'\n": "objects.endpoint must be a URL",
    "[[role]]\nname = 'a b'\n": "role[0].name must be 1 to 64 letters",
}

OPTIONS = {
    ("jobs", "--max", "many"): "--max: 'many' is not a whole number",
    ("jobs", "--max", "0"): "--max must be between 1 and 10000",
    ("jobs", "--since", "1w"): "--since: invalid duration '1w': use 90s, 15m, 2h or 1d",
    ("jobs", "--tag", "=blue"): "--tag: missing key in '=blue': use KEY=VALUE or KEY",
    ("cost", "--by", "team"): "--by: unknown grouping 'team': use tag:KEY, user, instance, day",
    ("cost", "--by", "tag:"): "--by: unknown grouping 'tag:'",
    ("cost", "--since", "q"): "--since: invalid duration 'q'",
    ("jobs", "--sinse", "1h"): "unknown option '--sinse'; did you mean --since?",
    ("jobs", "--watch=yes"): "--watch takes no value",
    ("jobs", "--max"): "--max needs a value",
}


def serve(directory: pathlib.Path, *more: str) -> str:
    """Runs a server that must fail to start, and returns its error output."""
    done = subprocess.run(
        [trainyard_server.PROGRAM, "serve", "--data", str(directory / "data"), *more],
        capture_output=True,
        text=True,
        timeout=trainyard_server.START_SECONDS_MAX,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode != 0, done.stdout
    return done.stderr


@pytest.mark.parametrize("text", SETTINGS)
def test_a_wrong_setting_is_named_with_its_file(tmp_path: pathlib.Path, text: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text, encoding="utf-8")
    printed = serve(tmp_path, "--listen", "127.0.0.1:0", "--config", str(config))
    assert f"reading the config {config}: {SETTINGS[text]}" in printed


@pytest.mark.parametrize("address", ["nowhere", "foo:bar", "1.2.3.4:99999", ":", "1:1:1", "::1:0"])
def test_an_invalid_address_is_reported_with_its_option(
    tmp_path: pathlib.Path, address: str
) -> None:
    printed = serve(tmp_path, "--listen", address)
    assert f"--listen: invalid address '{address}': it must be ADDRESS:PORT" in printed


@pytest.mark.parametrize("arguments", OPTIONS, ids=" ".join)
def test_a_wrong_option_is_named(server: Server, arguments: tuple[str, ...]) -> None:
    assert OPTIONS[arguments] in CommandLine(server)(*arguments, code=None).stderr


def test_the_regions_of_a_server_are_named_once(server: Server) -> None:
    printed = CommandLine(server)("jobs", "--region", "mars", code=1).stderr
    assert "not 'mars': this server's regions are ap-south-1, eu-west-1, us-east-1." in printed


def test_help_and_unknown_names_of_benches_need_no_build() -> None:
    """`./yard bench` answers them before it installs or builds anything."""
    for arguments, code, printed in (
        (["--help"], 0, "usage: ./yard bench [NAME..]"),
        (["nothing"], 2, "unknown bench nothing: use collectives,"),
    ):
        done = subprocess.run(
            ["./yard", "bench", *arguments],
            cwd=trainyard_server.ROOT,
            capture_output=True,
            text=True,
            timeout=trainyard_server.START_SECONDS_MAX,
        )
        assert done.returncode == code and printed in done.stdout + done.stderr
        assert "building" not in done.stderr and "installing" not in done.stderr
