"""Tests a table of attacks, from inside jobs and from outside, each with its expected error and the
record of the rejection (tests/hostile).

One server is attacked by all of them at once. Jobs that attack in one process share a container;
attacks on the agent's reading of files, and by images, are separate jobs. A test checks the outcome
of each row."""

import json
import os
import pathlib
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import botocore.exceptions
import pytest

from tests import jobs
from tests.hostile import agents, contents, files, keys, machine, requests, table, world
from tests.hostile.signer import Caller, code_of
from tests.hostile.table import AUDIT, NOWHERE, REASON, SERVER_LOG, Attack, Outcome
from tests.trainyard_server import ROOT, Server, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")
RESULT = os.environ.get("TRAINYARD_RESULT", "")  # the file for the results
INSIDE_MIN, OUTSIDE_MIN = 60, 40
RECORD_SECONDS_MAX = 20  # from an answer to its record
INSIDE = {**machine.GROUPS, "a job's own keys": keys.ATTACKS, "files of the job": files.ATTACKS}
OUTSIDE = {
    **requests.GROUPS,
    "as an agent": agents.ATTACKS,
    "images and archives": contents.ATTACKS,
}
CONFIG = """
account_id = "123456789012"
[[access_key]]
id = "AKIAOWNER00000000000"
secret = "owner-secret"
user = "owner"
[[access_key]]
id = "AKIAPOOR000000000000"
secret = "poor-secret"
user = "poor"
[[user]]
name = "poor"
[[machine]]
name = "box"
cpus = 24.0
memory_gib = 96.0
[jobs]
stop_grace_seconds = 1
[image_policy]
oci_directories = ["{images}"]
"""


def by_name(attacks: Sequence[Attack]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("attack", attacks, ids=[attack.name for attack in attacks])


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return files.make_hidden(tmp_path_factory.mktemp("machine"))


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def server(start: Callable[..., Server], images: str) -> Server:
    one = start(CONFIG.format(images=images))
    s3 = one.boto("s3")
    s3.create_bucket(Bucket="yard")
    s3.put_object(Bucket="yard", Key="data/part-0", Body=b"data")
    s3.put_object(Bucket="yard", Key="secret/object", Body=b"secret")
    return one


def python_job(
    server: Server,
    name: str,
    script: str,
    *arguments: object,
    channels: dict[str, tuple[str, str]] | None = None,
    environment: dict[str, str] | None = None,
    **others: Any,
) -> None:
    """Starts a job that runs `script`. `others`: further files next to it, name -> JSON value or
    text."""
    for file, content in {
        "script.py": script,
        **{key.replace("_", "."): value for key, value in others.items()},
    }.items():
        server.boto("s3").put_object(
            Bucket="yard",
            Key=f"code/{name}/{file}",
            Body=(content if isinstance(content, str) else json.dumps(content)).encode(),
        )
    request = jobs.request(
        name, channels={"code": (f"s3://yard/code/{name}/", "FullyReplicated")} | (channels or {})
    )
    request["AlgorithmSpecification"] |= {
        "ContainerEntrypoint": ["/usr/bin/python3", "/opt/ml/input/data/code/script.py"]
    }
    request["AlgorithmSpecification"].pop("ContainerArguments")
    if arguments:
        request["AlgorithmSpecification"]["ContainerArguments"] = list(arguments)
    server.boto("sagemaker").create_training_job(
        **request | ({"Environment": environment} if environment else {})
    )


def begin_probed_job(server: Server) -> tuple[str, str]:
    """Starts a job that the others attack. Returns its address, and its first id on the machine."""
    python_job(server, "victim", machine.PROBED_JOB)
    line = wait_for(
        lambda: next(
            (
                one
                for one in jobs.log_lines(server.boto("logs"), "victim")
                if one.startswith("victim")
            ),
            None,
        ),
        "the attacked job",
    )
    _, address, _, segment, ids = line.split()
    assert segment == "True"
    return address, ids


def begin_attacker(server: Server, probed_job: tuple[str, str]) -> None:
    """Starts the job "hostile", whose process attacks as root in its container."""
    python_job(
        server,
        "hostile",
        machine.ATTACKER,
        probed_job[0],
        server.data,
        server.listen.rsplit(":", 1)[1],
        probed_job[1],
        attempts_json=[[one.name, one.attempt] for one in machine.ATTACKS],
    )


@pytest.fixture(scope="module")
def probed_job(server: Server) -> tuple[str, str]:
    return begin_probed_job(server)


@pytest.fixture(scope="module")
def processes(server: Server, probed_job: tuple[str, str]) -> None:
    """Starts jobs whose process attacks: one as root in its container, one with its keys."""
    begin_attacker(server, probed_job)
    with open(os.path.join(ROOT, "tests", "hostile", "signer.py"), encoding="utf-8") as file:
        python_job(
            server,
            "thief",
            keys.SCRIPT,
            environment={"ACCOUNT": "123456789012"},
            channels={"train": ("s3://yard/data/", "FullyReplicated")},
            signer_py=file.read(),
            calls_json=[*keys.OWN, *([one.name, one.attempt] for one in keys.ATTACKS)],
        )


@pytest.fixture(scope="module")
def file_jobs(server: Server, hidden: pathlib.Path) -> None:
    """Runs all jobs that attack by their files at once, so that they are each other's neighbours,
    too."""
    for name, script in [(one.name, one.attempt) for one in files.ATTACKS] + list(files.ORDINARY):
        server.boto("sagemaker").create_training_job(
            **jobs.request(
                name,
                script.replace("MACHINE", str(hidden)),
                CheckpointConfig={"S3Uri": f"s3://yard/ckpt/{name}"},
            )
        )


@pytest.fixture(scope="module")
def content_jobs(server: Server, hidden: pathlib.Path, images: str) -> dict[str, Any]:
    """Runs all jobs that attack by their contents at once. Returns the errors of those that are
    rejected at creation."""
    world = contents.World(server, images, hidden)
    refused: dict[str, Any] = {}
    for attack in contents.ATTACKS:
        try:
            server.boto("sagemaker").create_training_job(**attack.attempt(world))
        except botocore.exceptions.ClientError as error:
            refused[attack.name] = error.response
    return refused


def lines_of(server: Server, job: str, begin: str) -> dict[str, str]:
    """Returns the words of the lines of a finished job's log that begin with `begin`, by their
    first word."""
    done = jobs.wait_until(server.boto("sagemaker"), job)
    lines = jobs.log_lines(server.boto("logs"), job)
    assert done["TrainingJobStatus"] == "Completed", (done.get("FailureReason"), lines[-20:])
    return {
        line.split()[1]: line.split(maxsplit=2)[2] for line in lines if line.startswith(begin + " ")
    }


# -- attacks from inside jobs


@pytest.fixture(scope="module")
# started together
def tried_by_processes(
    server: Server, processes: None, file_jobs: None, content_jobs: dict[str, Any]
) -> dict[str, str]:
    return lines_of(server, "hostile", "TRIED")


@by_name(machine.ATTACKS)
def test_a_process_reaches_nothing_of_the_machine(
    tried_by_processes: dict[str, str], attack: Attack
) -> None:
    answer = tried_by_processes[attack.name]
    table.check(attack, Outcome(answer, answer))  # as it was read from the job's log


@pytest.fixture(scope="module")
def tried_by_thief(server: Server, processes: None) -> dict[str, str]:
    return lines_of(server, "thief", "TRIED")


def test_a_jobs_keys_reach_what_is_its_own(tried_by_thief: dict[str, str]) -> None:
    for name, _ in keys.OWN:
        assert tried_by_thief[name].split()[1] == "200", tried_by_thief[name]


def recorded(server: Server, attack: Attack, request_id: str) -> str:
    """Returns the record of a refused request in the log that `attack.logged` names."""
    if attack.logged == SERVER_LOG:
        return table.find_line(server.log_text(), request_id, "error=")
    return table.find_record(table.audit_records(server), request_id, *attack.more)


@by_name(keys.ATTACKS)
def test_a_jobs_keys_reach_nothing_else(
    server: Server, tried_by_thief: dict[str, str], attack: Attack
) -> None:
    request_id, answer = tried_by_thief[attack.name].split(maxsplit=1)
    record = wait_for(
        lambda: recorded(server, attack, request_id),
        f"{attack.name} ({answer}) in the {attack.logged}",
        RECORD_SECONDS_MAX,
    )
    if attack.logged == AUDIT:
        record_of = json.loads(record)
        assert "assumed-role/trainer/" in record_of["userIdentity"]["arn"] and record_of[
            "errorCode"
        ].startswith(("AccessDenied", "AuthorizationError")), record_of
    table.check(attack, Outcome(answer, record))


def outcome_of_job(server: Server, attack: Attack) -> Outcome:
    """Returns the outcome of an attack by a job, from its failure reason or log."""
    done = jobs.wait_until(server.boto("sagemaker"), attack.name)
    log = "\n".join(jobs.log_lines(server.boto("logs"), attack.name))
    assert done["TrainingJobStatus"] == attack.more[0], (done.get("FailureReason"), log)
    assert files.SECRET not in done.get("FailureReason", "")
    assert "stolen" not in [metric["MetricName"] for metric in done.get("FinalMetricDataList", [])]
    output = (
        ""
        if attack.logged == NOWHERE
        else done.get("FailureReason", "")
        if attack.logged == REASON
        else log
    )
    return Outcome(output, output)


@by_name(files.ATTACKS)
def test_the_agent_reads_and_writes_nothing_of_the_machine(
    server: Server, file_jobs: None, hidden: pathlib.Path, attack: Attack
) -> None:
    table.check(attack, outcome_of_job(server, attack))
    files.expect_nothing_of_the_machine(server, hidden, attack.name)


def test_files_of_the_job_itself_are_uploaded(server: Server, file_jobs: None) -> None:
    for name in ("own-hard-link", "checkpoint-again", "checkpoint-swap", "checkpoint-below"):
        jobs.wait_until(server.boto("sagemaker"), name)
    found = files.stored(server, "ckpt/")
    assert found["ckpt/own-hard-link/last"] == found["ckpt/own-hard-link/step"] == b"1\n"
    assert found["ckpt/checkpoint-again/again"] == b"1\n"
    assert found["ckpt/checkpoint-swap/a"] == b"1\n"
    assert found["ckpt/checkpoint-below/d/secret"] == b"1\n"


# -- attacks from outside


@pytest.fixture(scope="module")
def outside(server: Server, processes: None) -> world.World:
    lines_of(server, "thief", "KEYS")  # it has ended, and its keys with it
    line = next(
        one for one in jobs.log_lines(server.boto("logs"), "thief") if one.startswith("KEYS ")
    )
    return world.World(
        server,
        {"AccessKeyId": "AKIAPOOR000000000000", "SecretAccessKey": "poor-secret"},
        json.loads(line.removeprefix("KEYS ")),
    )


@by_name(requests.ATTACKS)
def test_requests_are_refused(server: Server, outside: world.World, attack: Attack) -> None:
    status, text = attack.attempt(outside)
    request_id = Caller.last_request_id
    record = wait_for(
        lambda: recorded(server, attack, request_id),
        f"{attack.name} ({status} {text}) in the {attack.logged}",
        RECORD_SECONDS_MAX,
    )
    if attack.logged == AUDIT:
        assert json.loads(record)["userIdentity"]["arn"].endswith("user/poor"), record
    table.check(attack, Outcome(f"{status} {code_of(text)}", record))


def test_a_presigned_url_expires(outside: world.World) -> None:
    target = "?".join(outside.presigned("get_object", seconds=1))

    def ended() -> bool:
        status, text = outside.plain("GET", target, {})
        return status == 403 and code_of(text) == "AccessDenied" and "expired" in text

    wait_for(ended, "the URL to have ended", 30)


@by_name(agents.ATTACKS)
def test_impostors_among_agents_are_refused(
    server: Server, probed_job: tuple[str, str], attack: Attack
) -> None:
    number = next(
        int(re.match(r"j(\d+)a", name)[1])
        for name in sorted(os.listdir(os.path.join(server.data, "attempts")))
    )
    before = len(server.log_text())
    agents.attack(os.path.join(server.data, "agents.sock"), attack.attempt(number))
    line = wait_for(
        lambda: next(
            iter(re.findall(rf".*(?:{attack.refused}).*", server.log_text()[before:])), ""
        ),
        f"{attack.name} in the {attack.logged}",
        RECORD_SECONDS_MAX,
    )
    table.check(attack, Outcome(line, line))


def test_other_users_of_the_machine_do_not_reach_the_agents_socket(server: Server) -> None:
    program = f"import socket; socket.socket(socket.AF_UNIX).connect('{server.data}/agents.sock')"
    done = subprocess.run(
        [
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "/usr/bin/python3",
            "-c",
            program,
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0 and "Permission denied" in done.stderr, done.stderr


@by_name(contents.ATTACKS)
def test_hostile_contents_reach_nothing(
    server: Server, content_jobs: dict[str, Any], hidden: pathlib.Path, attack: Attack
) -> None:
    if attack.more == ("refused",):
        response = content_jobs[attack.name]
        request_id = response["ResponseMetadata"]["RequestId"]
        return table.check(
            attack,
            Outcome(
                response["Error"]["Message"],
                table.find_line(server.log_text(), request_id, "error="),
            ),
        )
    table.check(attack, outcome_of_job(server, attack))
    files.expect_nothing_of_the_machine(server, hidden, attack.name)
    assert not os.path.exists("/escaped") and not os.path.exists("/tmp/escaped")


# -- after all attacks


def test_the_server_and_its_tenants_are_well(
    server: Server, probed_job: tuple[str, str], outside: world.World
) -> None:
    s3 = server.boto("s3")
    assert s3.get_object(Bucket="yard", Key="secret/object")["Body"].read() == b"secret"
    assert s3.get_object(Bucket="yard", Key="data/part-0")["Body"].read() == b"data"
    assert "copy" not in [
        entry["Key"] for entry in s3.list_objects_v2(Bucket="yard").get("Contents", [])
    ]
    sagemaker = server.boto("sagemaker")
    assert (
        sagemaker.describe_training_job(TrainingJobName="victim")["TrainingJobStatus"]
        == "InProgress"
    )
    for name in ("spawned", "poors"):
        with pytest.raises(botocore.exceptions.ClientError, match="not found"):
            sagemaker.describe_training_job(TrainingJobName=name)
    assert not any("forged" in line for line in jobs.log_lines(server.boto("logs"), "victim"))
    assert [
        user["UserName"]
        for user in server.boto("iam").list_users()["Users"]
        if user["UserName"] == "mallory"
    ] == []
    assert not os.path.exists("/usr/bin/owned")
    sagemaker.create_training_job(**jobs.request("ordinary", "echo ran"))
    assert jobs.wait_until(sagemaker, "ordinary")["TrainingJobStatus"] == "Completed"
    assert jobs.log_lines(server.boto("logs"), "ordinary") == ["ran"]
    sagemaker.stop_training_job(TrainingJobName="victim")


def counted(groups: Mapping[str, Sequence[Attack]]) -> int:
    return sum(attack.logged != NOWHERE for attacks in groups.values() for attack in attacks)


def test_the_table_is_as_long_as_promised() -> None:
    """Counts the rows whose rejection is recorded."""
    names = [
        attack.name
        for groups in (INSIDE, OUTSIDE)
        for attacks in groups.values()
        for attack in attacks
    ]
    assert len(names) == len(set(names)), "every row has a name of its own"
    print(
        "\nfrom inside a job\n"
        + table.summary(INSIDE)
        + "\n\nfrom outside\n"
        + table.summary(OUTSIDE)
    )
    assert counted(INSIDE) >= INSIDE_MIN and counted(OUTSIDE) >= OUTSIDE_MIN
    if RESULT:
        rows = [
            {
                "where": where,
                "group": group,
                "name": one.name,
                "tried": one.tried,
                "refused": one.refused,
                "logged": one.logged,
            }
            for where, groups in (("inside", INSIDE), ("outside", OUTSIDE))
            for group, attacks in groups.items()
            for one in attacks
        ]
        with open(os.path.join(ROOT, RESULT), "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
            file.write("\n")
