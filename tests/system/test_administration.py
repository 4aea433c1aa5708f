"""Tests an administrator's work with a server: the config, warnings, state and log, and access for
users."""

import json
import os
import pathlib
import pty
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests import trainyard_server
from tests.calls import refused
from tests.trainyard_server import Server, wait_for

WAIT = trainyard_server.WAIT_SECONDS_MAX
ORDINARY_USER = 65534  # an ordinary user that every machine has
OWNER = "[[access_key]]\nid = 'AKIAOWNEROWNEROWNER0'\nsecret = 'owner-secret'\n"
ANN = "[[access_key]]\nid = 'AKIAANNANNANNANNANN0'\nsecret = 'ann-secret'\nuser = 'ann'\n"
TEAM = (
    OWNER + "[[group]]\nname = 'team'\npolicies = ['PowerUserAccess']\n"
    "[[user]]\nname = 'ann'\ngroups = ['team']\n" + ANN
)

Cli = Callable[..., str]


def command(server: Server) -> Cli:
    """Runs the program as the server's owner, and returns its output."""

    def run(*arguments: str, code: int = 0, **environment: str) -> str:
        done = subprocess.run(
            [trainyard_server.PROGRAM, *arguments],
            env=server.environment() | environment,
            capture_output=True,
            text=True,
            timeout=WAIT,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stdout + done.stderr

    return run


def doctor(server: Server, *more: str) -> str:
    """Runs `trainyard doctor`; returns its lines about the config, not the machine."""
    done = subprocess.run(
        [trainyard_server.PROGRAM, "doctor", "--data", server.data, *more],
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    assert done.returncode == 0, done.stderr
    return "\n".join(line for line in done.stdout.splitlines() if " config " in line)


def file_of(server: Server) -> str:
    return server.data.rstrip("/") + ".toml"


# -- the config ------------------------------------------------------------------------------------


def test_settings_that_are_probably_wrong_are_reported_everywhere(
    start: Callable[..., Server],
) -> None:
    server = start(
        OWNER + "[[machine]]\nname = 'box'\ncpus = 1000\nmemory_gib = 9999\n"
        "[[quota]]\nuser = 'bob'\ninstance_type = 'ml.m5.large'\ncount = 2\n"
        "[[storage_quota]]\nuser = 'bob'\ngib = 5\n"
    )
    cli = command(server)
    status = json.loads(cli("status", "--json"))
    for part in (
        "machine[0].cpus: box offers 1000 to jobs, but this machine has",
        "machine[0].memory_gib: box offers 9.8 TiB of memory to jobs, but this machine has",
        "quota[0].user: user or role 'bob' not found",
        "storage_quota.user: user 'bob' not found",
    ):
        assert part in server.log_text()
        assert part in "\n".join(status["Warnings"])
        assert part in cli("status")
        assert part in doctor(server), "of the config of the last start"
    cli("user", "add", "bob", "--policies", "PowerUserAccess")
    assert "bob" not in "\n".join(json.loads(cli("status", "--json"))["Warnings"])
    assert "bob" not in doctor(server)


def test_doctor_checks_a_config_before_it_is_used(tmp_path: pathlib.Path) -> None:
    server = Server(tmp_path / "data")  # never started
    config = tmp_path / "trainyard.toml"
    config.write_text(TEAM, encoding="utf-8")
    assert re.search(f"^ok +config +{config}$", doctor(server, "--config", str(config)))
    # The trust of such a role names the account, which only the first start makes.
    config.write_text("[[role]]\nname = 'Train'\n", encoding="utf-8")
    assert re.search(f"^ok +config +{config}$", doctor(server, "--config", str(config)))
    config.write_text(TEAM + "[[quota]]\nuser = 'a b'\ncount = 1\n", encoding="utf-8")
    assert 'quota[0].user: "a b" must be' in doctor(server, "--config", str(config))


def test_a_data_directory_keeps_its_account(start: Callable[..., Server]) -> None:
    server = start("account_id = '111111111111'\n" + OWNER)
    server.boto("s3").create_bucket(Bucket="kept")
    server.stop()
    server.config = "account_id = '222222222222'\n" + OWNER
    with pytest.raises(AssertionError) as failed:
        server.start()
    for part in ("belongs to the account 111111111111", "is 222222222222", "--data"):
        assert part in str(failed.value)
    assert "belongs to the account 111111111111" in doctor(server, "--config", file_of(server))
    server.config = OWNER
    server.start()
    assert server.boto("sts").get_caller_identity()["Account"] == "111111111111"
    assert [one["Name"] for one in server.boto("s3").list_buckets()["Buckets"]] == ["kept"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda config: config.replace("1111", "2222"), "belongs to the account 111111111111"),
        (
            lambda config: config + "[[quota]]\nuser = 'a b'\ncount = 1\n",
            "must be the name of a user",
        ),
        (lambda config: config.replace("PowerUserAccess", "NoSuchPolicy"), "NoSuchPolicy"),
        (lambda config: config.replace("[[group]]", "[[grupo]]"), "unknown key 'grupo'"),
    ],
    ids=["account", "quota", "policy", "key"],
)
def test_a_reload_with_an_error_keeps_the_old_settings(
    start: Callable[..., Server], change: Callable[[str], str], reason: str
) -> None:
    config = "account_id = '111111111111'\n" + TEAM
    server = start(config)
    with open(server.data + "/identity.json", encoding="utf-8") as file:
        identity = file.read()
    ann = {"aws_access_key_id": "AKIAANNANNANNANNANN0", "aws_secret_access_key": "ann-secret"}
    server.reload(change(config.replace("ann-secret", "another-secret")))
    wait_for(lambda: "the config was not reloaded" in server.log_text(), "the refusal")
    assert reason in server.log_text().replace("\\", "")
    assert server.boto("sts", **ann).get_caller_identity()["Account"] == "111111111111"
    assert server.boto("s3", **ann).list_buckets()["Buckets"] == []
    with open(server.data + "/identity.json", encoding="utf-8") as file:
        assert file.read() == identity


def test_a_reload_reports_new_warnings(start: Callable[..., Server]) -> None:
    server = start(OWNER)
    assert json.loads(command(server)("status", "--json"))["Warnings"] == []
    server.reload(OWNER + "[[storage_quota]]\nuser = 'bob'\ngib = 5\n")
    wait_for(lambda: "user 'bob' not found" in server.log_text(), "the warning")
    assert len(json.loads(command(server)("status", "--json"))["Warnings"]) == 1


# -- what users need -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared(start: Callable[..., Server]) -> Server:
    """Starts a server with users of its config and of IAM."""
    server = start(TEAM + "[server]\ncertificate_names = ['yard.test']\n")
    command(server)("user", "add", "bob", "--groups", "team")
    return server


def evaluated(script: str, home: pathlib.Path, shell: str = "sh", times: int = 1) -> dict[str, str]:
    """Returns the variables that the script exports for an ordinary user with that home."""
    done = subprocess.run(
        [
            "setpriv",
            f"--reuid={ORDINARY_USER}",
            f"--regid={ORDINARY_USER}",
            "--clear-groups",
            shell,
            "-euc",
            'eval "$1"\n' * times + "env -0",
            "sh",
            script,
        ],
        env={"PATH": "/usr/bin:/bin", "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=WAIT,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    return dict(pair.split("=", 1) for pair in done.stdout.split("\0") if pair)


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """Makes a home that an ordinary user reaches, since pytest's directories are closed."""
    path = pathlib.Path("/tmp") / f"trainyard-home-{os.getpid()}"
    path.mkdir(mode=0o700)
    shutil.chown(path, ORDINARY_USER, ORDINARY_USER)
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("user", ["ann", "bob", ""])
def test_another_unix_user_gets_a_script_that_needs_no_file_of_the_servers(
    shared: Server, home: pathlib.Path, shell: str, user: str
) -> None:
    more = ["--user", user] if user else []
    endpoint = f"https://localhost:{shared.listen.split(':')[1]}"
    script = command(shared)("env", "--data", shared.data, *more, "--endpoint", endpoint + "/")
    assert shared.data not in script
    found = evaluated(script, home, shell)
    assert found == evaluated(script, home, shell, times=2)
    assert found["AWS_ENDPOINT_URL"] == endpoint
    for name in (
        "AWS_CA_BUNDLE",
        "AWS_CONFIG_FILE",
        "AWS_DATA_PATH",
        "SAGEMAKER_ADMIN_CONFIG_OVERRIDE",
        "PYTHONPATH",
    ):
        assert found[name].startswith(str(home) + "/"), name
        assert os.stat(found[name]).st_uid == ORDINARY_USER
    as_user = ["setpriv", f"--reuid={ORDINARY_USER}", f"--regid={ORDINARY_USER}", "--clear-groups"]
    for aws in (trainyard_server.TODAYS_AWS, trainyard_server.DEBIANS_AWS):
        if subprocess.run([*as_user, "test", "-x", aws], check=False).returncode != 0:
            continue  # below a directory that is closed to others
        arn = subprocess.run(
            [*as_user, aws, "sts", "get-caller-identity", "--query", "Arn", "--output", "text"],
            env=found,
            capture_output=True,
            text=True,
            timeout=WAIT,
            cwd="/",
        )
        assert arn.stdout.strip().endswith(f":user/{user}" if user else "/owner"), arn
    # The model of Trainyard's own operations is there, too.
    model = pathlib.Path(found["AWS_DATA_PATH"], "trainyard", "2026-11-20", "service-2.json")
    assert "DescribeServer" in json.loads(model.read_text(encoding="utf-8"))["operations"]


def test_only_users_that_may_read_the_data_directory_get_a_script(shared: Server) -> None:
    program = "/tmp/trainyard-program"
    shutil.copy(trainyard_server.PROGRAM, program)
    try:
        for more in ([], ["--user", "bob"]):
            done = subprocess.run(
                [
                    "setpriv",
                    f"--reuid={ORDINARY_USER}",
                    f"--regid={ORDINARY_USER}",
                    "--clear-groups",
                    program,
                    "env",
                    "--data",
                    shared.data,
                    *more,
                ],
                env={"PATH": "/usr/bin:/bin", "HOME": "/"},
                capture_output=True,
                text=True,
                timeout=WAIT,
                cwd="/",
            )
            assert done.returncode == 1
            assert "permission denied" in done.stderr.lower()
            assert done.stdout == ""
    finally:
        os.remove(program)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--user", "nobody"], "user 'nobody' not found: make it with `trainyard user add nobody`"),
        (["--endpoint", "yard.test"], "invalid endpoint"),
        (["--endpoint", "https://yard.test/x"], "invalid endpoint"),
        (["--endpoint", "https://yard.test;id"], "invalid endpoint"),
        (
            ["--user", "bob", "--endpoint", "https://other.test:4566"],
            "the server's certificate has no name 'other.test' (it has 127.0.0.1, localhost",
        ),
    ],
    ids=["user", "no URL", "a path", "a command", "a name"],
)
def test_invalid_arguments_are_rejected(shared: Server, arguments: list[str], reason: str) -> None:
    printed = command(shared)("env", "--data", shared.data, *arguments, code=1)
    assert reason in printed


def test_a_user_without_an_active_key_is_named(shared: Server) -> None:
    iam = shared.boto("iam")
    iam.create_user(UserName="keyless")
    run = command(shared)
    printed = run("env", "--data", shared.data, "--user", "keyless", code=1)
    assert "user 'keyless' has no active access key: make one with `aws iam" in printed
    key = iam.create_access_key(UserName="keyless")["AccessKey"]
    assert key["SecretAccessKey"] in run("env", "--data", shared.data, "--user", "keyless")
    iam.update_access_key(UserName="keyless", AccessKeyId=key["AccessKeyId"], Status="Inactive")
    assert "no active access key" in run("env", "--data", shared.data, "--user", "keyless", code=1)


def test_a_server_for_all_addresses_announces_its_names(tmp_path: pathlib.Path) -> None:
    """Runs in a separate network namespace, so that other machines cannot reach it."""
    server = Server(
        tmp_path / "data",
        "[server]\ncertificate_names = ['yard.test']\n",
        listen="0.0.0.0:4566",
        behind=["unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$0" "$@"'],
    ).start()
    try:
        assert re.search(r"^trainyard listens on 0\.0\.0\.0:4566$", server.log_text(), re.M)
        names = re.search(r"^  names +(.*)$", server.log_text(), re.M)
        assert names
        assert names[1].startswith("https://yard.test:4566, https://")
        assert names[1].endswith("and https://127.0.0.1:4566 on this machine")
        assert (
            f"trainyard env --data {server.data} --user NAME --endpoint https://yard.test:4566"
            in server.log_text()
        )
    finally:
        server.clean()


# -- users -----------------------------------------------------------------------------------------


def test_a_user_is_made_listed_and_removed(shared: Server) -> None:
    run = command(shared)
    page = run("user", "add", "cem", "--groups", "team", "--policies", "AmazonS3ReadOnlyAccess")
    key, secret = (re.search(rf"^{word} +(\S+)", page, re.M) for word in ("key", "secret"))
    assert key and secret, page
    assert re.search(r"^hand over  trainyard env --user cem$", page, re.M)
    cem = {"aws_access_key_id": key[1], "aws_secret_access_key": secret[1]}
    assert shared.boto("sts", **cem).get_caller_identity()["Arn"].endswith(":user/cem")
    assert shared.boto("s3", **cem).list_buckets()["Buckets"] == []

    shared.boto("iam").put_user_policy(
        UserName="cem",
        PolicyName="own",
        PolicyDocument=json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": {"Effect": "Allow", "Action": "sts:*", "Resource": "*"},
            }
        ),
    )
    listed = {one["UserName"]: one for one in json.loads(run("user", "list", "--json"))}
    assert {"ann", "bob", "cem"} <= set(listed)
    assert listed["cem"]["Groups"] == ["team"]
    assert listed["cem"]["Policies"] == ["AmazonS3ReadOnlyAccess", "own"]
    assert listed["cem"]["AccessKeys"][0]["AccessKeyId"] == key[1]
    assert listed["cem"]["AccessKeys"][0]["LastUsedDate"]
    row = next(line for line in run("user", "list").splitlines() if line.startswith("cem "))
    assert "team" in row and key[1] in row and secret[1] not in run("user", "list")

    assert (
        run("user", "remove", "cem") == "removed the user cem with 1 access key, 2 policies and"
        " 1 membership; jobs and objects stay\n"
    )
    code, _ = refused(shared.boto("sts", **cem).get_caller_identity)
    assert code == "InvalidClientTokenId"
    assert "user 'cem' not found" in run("user", "remove", "cem", code=1)
    for event in ("CreateUser", "CreateAccessKey", "DeleteAccessKey", "DeleteUser"):
        name = {"AttributeKey": "EventName", "AttributeValue": event}
        assert shared.boto("cloudtrail").lookup_events(LookupAttributes=[name])["Events"], event


def test_the_command_to_hand_over_finds_the_same_server(shared: Server, home: pathlib.Path) -> None:
    """The command has --data, since an administrator's shell may lack the server's variables."""
    elsewhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    endpoint = f"https://localhost:{shared.listen.split(':')[1]}"
    options = ["--data", shared.data, "--endpoint", endpoint]
    page = command(shared)("user", "add", "fay", *options, **elsewhere)
    line = re.search(r"^hand over  trainyard (.*)$", page, re.M)
    assert line, page
    found = evaluated(command(shared)(*shlex.split(line[1]), **elsewhere), home)
    assert found["AWS_ENDPOINT_URL"] == endpoint
    fay = {
        "aws_access_key_id": found["AWS_ACCESS_KEY_ID"],
        "aws_secret_access_key": found["AWS_SECRET_ACCESS_KEY"],
    }
    assert shared.boto("sts", **fay).get_caller_identity()["Arn"].endswith(":user/fay")


def test_a_user_that_cannot_be_made_completely_is_not_made(
    shared: Server, tmp_path: pathlib.Path
) -> None:
    run = command(shared)
    for more, reason in (
        (["--groups", "team,teem"], "The group with name teem cannot be found."),
        (["--policies", "PowerUserAcces"], "did you mean PowerUserAccess?"),
        (["--policies", "arn:aws:iam::aws:policy/None"], "the user eva was not made: "),
        (["--env", str(tmp_path / "missing" / "eva.env")], "the user eva was not made: "),
        (["--endpoint", "yard.test", "--env", str(tmp_path / "eva.env")], "invalid endpoint"),
    ):
        assert reason in run("user", "add", "eva", *more, code=1)
        assert "eva" not in run("user", "list")
    assert not (tmp_path / "eva.env").exists()
    assert "already exists" in run("user", "add", "bob", code=1)
    assert "bob" in run("user", "list"), "as before"


def test_the_file_of_a_new_user_is_secret_and_complete(
    shared: Server, tmp_path: pathlib.Path, home: pathlib.Path
) -> None:
    path = tmp_path / "dora.env"
    endpoint = f"https://localhost:{shared.listen.split(':')[1]}"
    page = command(shared)(
        "user", "add", "dora", "-g", "team", "--endpoint", endpoint, "--env", str(path)
    )
    assert path.stat().st_mode & 0o777 == 0o600
    found = evaluated(path.read_text(encoding="utf-8"), home)
    assert found["AWS_ENDPOINT_URL"] == endpoint
    assert found["AWS_SECRET_ACCESS_KEY"] not in page, "it is in the file"
    again = evaluated(
        command(shared)("env", "--data", shared.data, "--user", "dora", "--endpoint", endpoint),
        home,
    )
    assert again == found


def test_users_of_the_config_are_not_removed(shared: Server) -> None:
    run = command(shared)
    key = shared.boto("iam").create_access_key(UserName="ann")["AccessKey"]["AccessKeyId"]
    printed = run("user", "remove", "ann", code=1)
    assert "configuration file" in printed
    listed = {one["UserName"]: one for one in json.loads(run("user", "list", "--json"))}
    assert key in {one["AccessKeyId"] for one in listed["ann"]["AccessKeys"]}, "nothing is deleted"
    printed = run("user", "remove", "owner", code=1)
    assert "[[access_key]] AKIAOWNEROWNEROWNER0 of the server's config" in printed


def test_the_commands_for_users_need_permission(shared: Server) -> None:
    ann = {"AWS_ACCESS_KEY_ID": "AKIAANNANNANNANNANN0", "AWS_SECRET_ACCESS_KEY": "ann-secret"}
    run = command(shared)
    for arguments, action in (
        (["add", "eva"], "iam:CreateUser"),
        (["list"], "iam:ListUsers"),
        (["remove", "bob"], "iam:GetUser"),
    ):
        printed = run("user", *arguments, code=1, **ann)
        assert f"user/ann is not authorized to perform: {action}" in printed
    assert "bob" in run("user", "list")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["ad", "x"], "unknown action 'ad'; did you mean `trainyard user add`?"),
        (["add"], "missing argument NAME"),
        (["list", "x"], "unexpected argument 'x'"),
    ],
    ids=["action", "no name", "a name"],
)
def test_unknown_arguments_are_answered(shared: Server, arguments: list[str], reason: str) -> None:
    assert reason in command(shared)("user", *arguments, code=1)


# -- the server's state ----------------------------------------------------------------------------


def test_the_status_of_a_server(shared: Server) -> None:
    run = command(shared)
    status = json.loads(run("status", "--json"))
    assert status["DataDirectory"] == shared.data
    assert status["ConfigFile"] == file_of(shared)
    assert status["Account"] == shared.boto("sts").get_caller_identity()["Account"]
    assert status["LedgerBytes"] >= os.stat(shared.data + "/ledger.db").st_size > 0
    disk = os.statvfs(shared.data)
    assert status["DiskSizeBytes"] == disk.f_blocks * disk.f_frsize
    assert 0 < status["DiskFreeBytes"] < status["DiskSizeBytes"]
    assert "yard.test" in status["CertificateNames"]
    end = subprocess.run(
        ["openssl", "x509", "-noout", "-enddate", "-in", shared.data + "/tls/server.pem"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    year = re.search(r" (\d{4}) GMT", end)
    page = run("status")
    assert year and re.search(rf"^certificate  ends {year[1]}-", page, re.M)
    for title in ("endpoint", "started", "disk", "ledger", "jobs", "agents", "names"):
        assert re.search(rf"^{title} ", page, re.M), page


def test_errors_of_the_log_are_in_the_status(start: Callable[..., Server]) -> None:
    server = start(OWNER)
    assert json.loads(command(server)("status", "--json"))["Errors"] == []
    server.reload("unknown = 1\n")
    wait_for(lambda: "was not reloaded" in server.log_text(), "the error")
    errors = json.loads(command(server)("status", "--json"))["Errors"]
    assert len(errors) == 1 and errors[0]["Message"].startswith(
        "serve: the config was not reloaded"
    )
    assert "Last errors\n" in command(server)("status")


def test_the_status_needs_permission(shared: Server) -> None:
    run = command(shared)
    page = run("user", "add", "poor", "--policies", "AmazonS3FullAccess", "--json")
    made = json.loads(page)
    printed = run(
        "status",
        code=1,
        AWS_ACCESS_KEY_ID=made["AccessKeyId"],
        AWS_SECRET_ACCESS_KEY=made["SecretAccessKey"],
    )
    assert "user/poor is not authorized to perform: trainyard:DescribeServer" in printed
    assert shared.data not in printed


def test_a_terminal_gets_colours(shared: Server) -> None:
    master, slave = pty.openpty()
    environment = shared.environment() | {"TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [trainyard_server.PROGRAM, "status"], env=environment, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        os.close(master)
        assert process.wait(WAIT) == 0
    assert b"\033[2mdisk" in shown
