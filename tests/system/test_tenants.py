"""Tests two tenants of one server that attack each other: with their own keys and from inside their
own jobs, every operation of the server on the other's resources; and from their containers the
other's processes, files and network. Each has a policy for a bucket, names that begin with the
tenant's name, and Batch jobs with the tenant's tag."""

import base64
import json
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import botocore.exceptions
import pytest
from botocore.client import BaseClient

from tests import jobs, oci
from tests.hostile import calls, machine
from tests.hostile.signer import Caller, code_of
from tests.hostile.table import JOB_LOG, Attack, Outcome, check
from tests.trainyard_server import ROOT, Server, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")
TENANTS = ("ann", "bob")
OTHER = {"ann": "bob", "bob": "ann"}
KEYS = {
    name: {
        "AccessKeyId": f"AKIA{name.upper()}000000000000",
        "SecretAccessKey": f"{name}-key-secret",
    }
    for name in TENANTS
}
CANARY = "canary-of-"  # followed by the tenant's name, in objects, logs, variables and files

# The permissions of a tenant, for its own resources only.
POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": "sagemaker:*",
            "Resource": "arn:aws:sagemaker:*:*:training-job/TENANT-*",
        },
        {
            "Effect": "Allow",
            "Action": "trainyard:*",
            "Resource": [
                "arn:aws:trainyard:*:*:job/TENANT-*",
                "arn:aws:sagemaker:*:*:training-job/TENANT-*",
            ],
        },
        {
            "Effect": "Allow",
            "Action": "s3:*",
            "Resource": ["arn:aws:s3:::TENANT", "arn:aws:s3:::TENANT/*"],
        },
        {
            "Effect": "Allow",
            "Action": "logs:*",
            "Resource": ["arn:aws:logs:*:*:log-group:*:log-stream:TENANT-*"],
        },
        {
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": "arn:aws:iam::*:role/TENANT-trainer",
        },
        {"Effect": "Allow", "Action": "batch:*", "Resource": "arn:aws:batch:*:*:*/TENANT-*"},
        {
            "Effect": "Allow",
            "Action": "batch:SubmitJob",
            "Resource": [
                "arn:aws:batch:*:*:job-queue/shared",
                "arn:aws:batch:*:*:job-definition/shared",
            ],
        },
        {
            "Effect": "Allow",
            "Action": ["batch:DescribeJobs", "batch:CancelJob", "batch:TerminateJob"],
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:ResourceTag/tenant": "TENANT"}},
        },
    ],
}
CONFIG = """
account_id = "123456789012"
[[access_key]]
id = "AKIAOWNER00000000000"
secret = "owner-secret"
user = "owner"
[[machine]]
name = "box"
cpus = 16.0
memory_gib = 64.0
[jobs]
stop_grace_seconds = 1
"""
TENANT = """
[[access_key]]
id = "{key}"
secret = "{secret}"
user = "{name}"
[[policy]]
name = "{name}-policy"
document = '''{policy}'''
[[user]]
name = "{name}"
policies = ["{name}-policy"]
[volumes."/{name}"]
directory = "{volume}"
users = ["{name}"]
"""
CALLS = r"""
import base64, json
import signer
my = signer.caller_of_this_job()
for name, (scope, method, path, query, fields, body) in json.load(open("/opt/ml/input/data/code/calls.json")):
    status, text = my.call(scope, method, path, query, fields, base64.b64decode(body))
    print("CALLED", json.dumps([name, status, signer.code_of(text), text[:300]]), flush=True)
"""
NEIGHBOUR = machine.NEIGHBOUR + tuple(
    Attack(name, tried, rf"^({refused})$", JOB_LOG, attempt)
    for name, tried, attempt, refused in (
        (
            "credentials-of-the-other",
            "request the other's keys by their path",
            "http(os.environ['OTHERS_PATH'])",
            "HTTP 404",
        ),
        (
            "credentials-guessed",
            "request keys by guessed paths",
            (
                "[path for path in ('/v2/credentials/' + os.urandom(16).hex() for _ in range(100))"
                " if answered(path)]"
            ),
            "absent",
        ),
        ("credentials-listed", "list whose keys there are", "http('/v2/credentials/')", "HTTP 404"),
        (
            "ports",
            "find any port of the other, its agent's among them",
            "[port for port in (22, 80, 4566, 9000) if open_port(victim, port)]",
            "absent",
        ),
        (
            "environment",
            "read the other's variables",
            (
                "[path for path in glob.glob('/proc/[0-9]*/environ') if 'canary-of-' +"
                " os.environ['OTHER'] in environment_of(path)]"
            ),
            "absent",
        ),
        (
            "kill-all",
            "kill all processes that it may",
            "os.kill(-1, signal.SIGKILL) or 'killed'",
            "ESRCH",
        ),
        (
            "volume",
            "find the other's volume",
            "os.path.exists('/' + os.environ['OTHER'])",
            "absent",
        ),
        (
            "queues",
            "find a POSIX message queue of the other",
            "os.listdir('/dev/mqueue')",
            "absent",
        ),
    )
)
# In addition to those of machine.ATTACKER.
FUNCTIONS = r"""
def http(path):
    import urllib.request, urllib.error
    try:
        return urllib.request.urlopen("http://169.254.170.2" + path, timeout=5).read()
    except urllib.error.HTTPError as error:
        raise Status(error.code) from None

class Status(OSError):
    def __init__(self, code):
        super().__init__()
        self.code = code
    def __repr__(self):
        return f"HTTP {self.code}"

def environment_of(path):
    try:
        return "" if path.split("/")[2] in (str(os.getpid()), "1") else read(path, 1 << 16).decode(errors="replace")
    except OSError:
        return ""

def answered(path):
    try:
        return http(path)
    except OSError:
        return ""

def open_port(host, to):
    try:
        return connect(host, to)
    except OSError:
        return ""
"""


def client(server: Server, tenant: str, service: str) -> BaseClient:
    return server.boto(
        service,
        aws_access_key_id=KEYS[tenant]["AccessKeyId"],
        aws_secret_access_key=KEYS[tenant]["SecretAccessKey"],
    )


def python_job(
    server: Server,
    tenant: str,
    name: str,
    script: str,
    arguments: Sequence[str] = (),
    environment: dict[str, str] | None = None,
    **files: Any,
) -> None:
    """Starts a job of the tenant with the tenant's own key."""
    s3 = client(server, tenant, "s3")
    for file, content in {
        "script.py": script,
        **{key.replace("_", "."): value for key, value in files.items()},
    }.items():
        s3.put_object(
            Bucket=tenant,
            Key=f"code/{name}/{file}",
            Body=(content if isinstance(content, str) else json.dumps(content)).encode(),
        )
    request = jobs.request(
        name,
        bucket=tenant,
        channels={"code": (f"s3://{tenant}/code/{name}/", "FullyReplicated")},
        RoleArn=f"arn:aws:iam::123456789012:role/{tenant}-trainer",
        Environment={"CANARY": CANARY + tenant} | (environment or {}),
    )
    request["AlgorithmSpecification"] |= {
        "ContainerEntrypoint": ["/usr/bin/python3", "/opt/ml/input/data/code/script.py"]
    }
    request["AlgorithmSpecification"].pop("ContainerArguments")
    if arguments:
        request["AlgorithmSpecification"]["ContainerArguments"] = list(arguments)
    client(server, tenant, "sagemaker").create_training_job(**request)


def submit(
    server: Server, tenant: str, name: str, wait: bool = True, **more: Any
) -> tuple[str, dict[str, Any] | None]:
    """Runs a Batch job of the tenant; returns its number and how it ended."""
    batch, seen = client(server, tenant, "batch"), {}
    number = batch.submit_job(jobName=f"{tenant}-{name}", tags={"tenant": tenant}, **more)["jobId"]

    def over() -> bool:
        seen.update(batch.describe_jobs(jobs=[number])["jobs"][0])
        return seen["status"] in ("SUCCEEDED", "FAILED")

    if wait:
        wait_for(over, f"{tenant}-{name} to be over")
    return number, seen


def own_batch_job(
    server: Server,
    tenant: str,
    name: str,
    command: Sequence[str],
    wait: bool = True,
    **properties: Any,
) -> tuple[str, dict[str, Any] | None]:
    """Does the same in the tenant's own queue, with its own definition."""
    client(server, tenant, "batch").register_job_definition(
        jobDefinitionName=f"{tenant}-{name}",
        type="container",
        containerProperties={
            "image": "trainyard/host",
            "command": ["/bin/sh", "-c", command],
            "resourceRequirements": [
                {"type": "VCPU", "value": "1"},
                {"type": "MEMORY", "value": "64"},
            ],
            "jobRoleArn": f"arn:aws:iam::123456789012:role/{tenant}-trainer",
            **properties,
        },
    )
    return submit(
        server, tenant, name, wait, jobQueue=f"{tenant}-queue", jobDefinition=f"{tenant}-{name}"
    )


@pytest.fixture(scope="module")
def server(start: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory) -> Server:
    config = CONFIG
    for name in TENANTS:
        volume = tmp_path_factory.mktemp(f"volume-{name}")
        (volume / "file").write_text(CANARY + name)
        volume.chmod(0o755)
        config += TENANT.format(
            name=name,
            key=KEYS[name]["AccessKeyId"],
            secret=KEYS[name]["SecretAccessKey"],
            volume=volume,
            policy=json.dumps(POLICY).replace("TENANT", name),
        )
    one = start(config)
    batch = one.boto("batch")
    for name in TENANTS:
        client(one, name, "s3").create_bucket(Bucket=name)
        client(one, name, "s3").put_object(Bucket=name, Key="secret", Body=(CANARY + name).encode())
        batch.create_compute_environment(
            computeEnvironmentName=f"{name}-environment",
            type="MANAGED",
            computeResources={"type": "EC2", "minvCpus": 0, "maxvCpus": 4, "subnets": ["subnet-1"]},
        )
        batch.create_job_queue(
            jobQueueName=f"{name}-queue",
            priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": f"{name}-environment"}],
        )
    batch.register_job_definition(
        jobDefinitionName="shared",
        type="container",
        containerProperties={
            "image": "trainyard/host",
            "command": ["true"],
            "resourceRequirements": [
                {"type": "VCPU", "value": "1"},
                {"type": "MEMORY", "value": "64"},
            ],
        },
    )
    batch.create_job_queue(
        jobQueueName="shared",
        priority=1,
        tags={"trainyard:reuse-hosts": "true"},
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "ann-environment"}],
    )
    return one


@pytest.fixture(scope="module")
def residents(server: Server) -> dict[str, dict[str, Any]]:
    """Starts a training job and a Batch job of each tenant, which run until the end. Returns tenant
    -> what an attacker could know of them."""
    known = {}
    for name in TENANTS:
        python_job(
            server,
            name,
            f"{name}-train",
            machine.PROBED_JOB.replace(
                'print("victim"',
                f'print("{CANARY}{name}",'
                ' os.environ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"])\nprint("victim"',
            ),
        )
    for name in TENANTS:
        number, _ = own_batch_job(server, name, "definition", "sleep 1000", wait=False)
        line = wait_for(
            lambda one=name: next(
                (
                    line
                    for line in jobs.log_lines(server.boto("logs"), f"{one}-train")
                    if line.startswith("victim")
                ),
                None,
            ),
            f"{name}'s job",
        )
        printed = jobs.log_lines(server.boto("logs"), f"{name}-train")
        stream = server.boto("logs").describe_log_streams(
            logGroupName="/aws/sagemaker/TrainingJobs", logStreamNamePrefix=f"{name}-train/"
        )["logStreams"][0]["logStreamName"]
        known[name] = {
            "address": line.split()[1],
            "ids": line.split()[4],
            "path": next(line.split()[1] for line in printed if line.startswith(CANARY)),
            "batch_job": number,
            "key": KEYS[name]["AccessKeyId"],
            "log_stream": stream,
        }
    return known


def calls_on(
    server: Server, residents: dict[str, dict[str, Any]], tenant: str
) -> list[tuple[str, list[Any]]]:
    """Returns requests of every operation on that tenant's resources, and copies of its objects
    to the other's bucket."""
    requests = calls.Requests(server.env["AWS_ENDPOINT_URL"])
    made = requests.all(calls.names_of(tenant, residents[tenant]))
    own = OTHER[tenant]
    made += [
        (
            "s3 CopyObject to the own bucket",
            requests.make(
                "s3",
                "CopyObject",
                {"Bucket": own, "Key": "stolen", "CopySource": f"{tenant}/secret"},
            ),
        ),
        (
            "s3 UploadPartCopy to the own bucket",
            requests.make(
                "s3",
                "UploadPartCopy",
                {
                    "Bucket": own,
                    "Key": "stolen",
                    "CopySource": f"{tenant}/secret",
                    "UploadId": "u",
                    "PartNumber": 1,
                },
            ),
        ),
        (
            "sagemaker CreateTrainingJob under the other's role",
            requests.make(
                "sagemaker",
                "CreateTrainingJob",
                jobs.request(
                    f"{own}-new",
                    bucket=own,
                    RoleArn=f"arn:aws:iam::123456789012:role/{tenant}-trainer",
                ),
            ),
        ),
        (
            "sagemaker CreateTrainingJob with the other's channel",
            requests.make(
                "sagemaker",
                "CreateTrainingJob",
                jobs.request(
                    f"{own}-new",
                    bucket=own,
                    channels={"in": (f"s3://{tenant}/", "FullyReplicated")},
                    RoleArn=f"arn:aws:iam::123456789012:role/{own}-trainer",
                ),
            ),
        ),
        (
            "sagemaker CreateTrainingJob with the other's output",
            requests.make(
                "sagemaker",
                "CreateTrainingJob",
                jobs.request(
                    f"{own}-new",
                    bucket=tenant,
                    RoleArn=f"arn:aws:iam::123456789012:role/{own}-trainer",
                ),
            ),
        ),
        (
            "batch SubmitJob with the other's definition",
            requests.make(
                "batch",
                "SubmitJob",
                {
                    "jobName": "new",
                    "jobQueue": f"{own}-queue",
                    "jobDefinition": f"{tenant}-definition",
                },
            ),
        ),
        (
            "batch SubmitJob to the other's queue",
            requests.make(
                "batch",
                "SubmitJob",
                {
                    "jobName": "new",
                    "jobQueue": f"{tenant}-queue",
                    "jobDefinition": f"{own}-definition",
                },
            ),
        ),
    ]
    return made


def expect_refused(name: str, status: int, code: str, text: str, tenant: str) -> None:
    """Checks that requests were refused. `tenant`: the owner of their resources."""
    assert CANARY + tenant not in text, f"{name}: {text}"
    if name in calls.FREE:
        assert status == 200, (name, status, text)
        return
    # an answer to HEAD has no body
    denied = code.startswith(calls.DENIED) or (status == 403 and not text)
    assert denied, f"{name} on what is {tenant}'s was answered {status} {code}: {text[:300]}"


def test_the_requests_belong_to_the_server(
    server: Server, residents: dict[str, dict[str, Any]]
) -> None:
    made = [name for name, _ in calls_on(server, residents, "ann")]
    assert [" ".join(one) for one in calls.operations()] == made[: len(calls.operations())] and len(
        made
    ) > 150


@pytest.mark.parametrize("tenant", TENANTS)
def test_the_key_of_the_other_tenant_is_denied_every_operation(
    server: Server, residents: dict[str, dict[str, Any]], tenant: str
) -> None:
    caller = Caller(server.env["AWS_ENDPOINT_URL"], KEYS[OTHER[tenant]])
    for name, (scope, method, path, query, fields, body) in calls_on(server, residents, tenant):
        status, text = caller.call(scope, method, path, query, fields, base64.b64decode(body))
        expect_refused(name, status, code_of(text), text, tenant)


def test_jobs_of_the_other_tenant_are_denied_every_operation(
    server: Server, residents: dict[str, dict[str, Any]]
) -> None:
    with open(os.path.join(ROOT, "tests", "hostile", "signer.py"), encoding="utf-8") as file:
        signer = file.read()
    for tenant in TENANTS:
        python_job(
            server,
            OTHER[tenant],
            f"{OTHER[tenant]}-calls",
            CALLS,
            signer_py=signer,
            calls_json=calls_on(server, residents, tenant),
        )
    for tenant in TENANTS:
        name = f"{OTHER[tenant]}-calls"
        done = jobs.wait_until(server.boto("sagemaker"), name)
        lines = jobs.log_lines(server.boto("logs"), name)
        assert done["TrainingJobStatus"] == "Completed", (done.get("FailureReason"), lines[-5:])
        called = [
            json.loads(line.removeprefix("CALLED ")) for line in lines if line.startswith("CALLED ")
        ]
        assert len(called) == len(calls_on(server, residents, tenant))
        for one in called:
            name, status, code, text = one
            expect_refused(name, status, code, text, tenant)


def test_containers_do_not_reach_each_other(
    server: Server, residents: dict[str, dict[str, Any]]
) -> None:
    for tenant in TENANTS:
        other = residents[OTHER[tenant]]
        script = machine.ATTACKER.replace("def call(function", FUNCTIONS + "\ndef call(function", 1)
        python_job(
            server,
            tenant,
            f"{tenant}-attack",
            script,
            [other["address"], server.data, server.listen.rsplit(":", 1)[1], other["ids"]],
            {"OTHER": OTHER[tenant], "OTHERS_PATH": other["path"]},
            attempts_json=[[one.name, one.attempt] for one in NEIGHBOUR],
        )
    for tenant in TENANTS:
        done = jobs.wait_until(server.boto("sagemaker"), f"{tenant}-attack")
        lines = jobs.log_lines(server.boto("logs"), f"{tenant}-attack")
        assert done["TrainingJobStatus"] == "Completed", (done.get("FailureReason"), lines)
        answers = {
            line.split()[1]: line.split(maxsplit=2)[2]
            for line in lines
            if line.startswith("TRIED ")
        }
        for attack in NEIGHBOUR:
            check(attack, Outcome(answers[attack.name], answers[attack.name]))


def test_lists_show_the_callers_jobs(server: Server, residents: dict[str, dict[str, Any]]) -> None:
    for tenant in TENANTS:
        logs, s3 = client(server, tenant, "logs"), client(server, tenant, "s3")
        streams = [
            one["logStreamName"]
            for one in logs.describe_log_streams(
                logGroupName="/aws/sagemaker/TrainingJobs", logStreamNamePrefix=f"{tenant}-"
            )["logStreams"]
        ]
        assert streams and all(name.startswith(tenant + "-") for name in streams)
        assert all(
            entry["Key"].startswith(("code/", "secret", "models/"))
            for entry in s3.list_objects_v2(Bucket=tenant)["Contents"]
        )
        for service, operation, more in (
            ("sagemaker", "list_training_jobs", {}),
            ("s3", "list_buckets", {}),
            ("batch", "list_jobs", {"jobQueue": f"{tenant}-queue"}),
            ("batch", "describe_job_definitions", {}),
            ("iam", "list_users", {}),
            ("logs", "describe_log_groups", {}),
        ):
            with pytest.raises(botocore.exceptions.ClientError, match="AccessDenied"):
                getattr(client(server, tenant, service), operation)(**more)


def test_shared_volumes_belong_to_their_users(
    server: Server, residents: dict[str, dict[str, Any]]
) -> None:
    for tenant in TENANTS:
        mounts: dict[str, Any] = {
            "volumes": [{"name": "v", "host": {"sourcePath": f"/{tenant}"}}],
            "mountPoints": [{"sourceVolume": "v", "containerPath": f"/{tenant}"}],
        }
        _, done = own_batch_job(
            server, tenant, "own-volume", f"grep -q {CANARY}{tenant} /{tenant}/file", **mounts
        )
        assert done["status"] == "SUCCEEDED", done
        with pytest.raises(
            botocore.exceptions.ClientError, match=f"user {OTHER[tenant]} may not use /{tenant}"
        ):
            own_batch_job(server, OTHER[tenant], "others-volume", "true", **mounts)


# a host keeps its addresses while it is reused
HOST = "echo host $(md5sum < /proc/net/fib_trie); "
LEAVE = (
    HOST
    + "for place in /tmp /dev/shm /var /opt /; do echo CANARY > $place/left; done; (trap '' HUP;"
    " exec sleep 1000) & true"
)
LOOK = (
    HOST
    + "grep -rs canary-of- /tmp /dev/shm /var /opt /left /proc/[0-9]*/environ && exit 9; for p in"
    " /proc/[0-9]*; do grep -q sleep $p/comm && exit 8; done; true"
)
TRIES_MAX = 10  # a kept host waits for a few seconds only


def test_nothing_is_left_on_a_host_that_serves_one_after_another(
    server: Server, residents: dict[str, dict[str, Any]]
) -> None:
    """Uses a queue whose hosts are kept for the next job of the same definition, which both tenants
    may use: a host is kept for the same tenant only."""
    logs = server.boto("logs")

    def host_of(tenant: str, name: str, script: str) -> str:
        _, seen = submit(
            server,
            tenant,
            name,
            jobQueue="shared",
            jobDefinition="shared",
            containerOverrides={"command": ["/bin/sh", "-c", script]},
        )
        events = logs.get_log_events(
            logGroupName="/aws/batch/job",
            logStreamName=seen["container"]["logStreamName"],
            startFromHead=True,
        )["events"]
        assert seen["status"] == "SUCCEEDED", (seen, events)
        return next(event["message"] for event in events if event["message"].startswith("host "))

    for tenant in TENANTS:
        leave, other = LEAVE.replace("CANARY", CANARY + tenant), OTHER[tenant]
        assert any(
            host_of(tenant, "leave", leave) == host_of(tenant, "again", HOST)
            for _ in range(TRIES_MAX)
        ), "hosts are kept at all"
        assert host_of(tenant, "leave", leave) != host_of(other, "look", LOOK)


def test_an_image_that_both_use_stays_as_it_was(
    server: Server, residents: dict[str, dict[str, Any]], tmp_path: pathlib.Path
) -> None:
    layout = oci.Layout(tmp_path / "layout")
    layout.image("v1", [oci.base()])
    scripts = {
        "ann": "echo canary > /left; echo canary > /bin/hostname; echo canary > /opt/ml/model/left",
        "bob": "cat /left /opt/ml/model/left; hostname",
    }
    for tenant in TENANTS:
        sagemaker = client(server, tenant, "sagemaker")
        sagemaker.create_training_job(
            **jobs.request(
                f"{tenant}-image",
                scripts[tenant],
                bucket=tenant,
                image=f"oci:{layout.path}:v1",
                RoleArn=f"arn:aws:iam::123456789012:role/{tenant}-trainer",
            )
        )
        done = jobs.wait_until(sagemaker, f"{tenant}-image")
        lines = jobs.log_lines(server.boto("logs"), f"{tenant}-image")
        assert done["TrainingJobStatus"] == "Completed", (done.get("FailureReason"), lines)
        assert "canary" not in lines, lines
    assert "algo-1" in lines, lines


def test_both_still_work(server: Server, residents: dict[str, dict[str, Any]]) -> None:
    """The attacked jobs still run, and end when their owners stop them."""
    for tenant in TENANTS:
        sagemaker, batch = client(server, tenant, "sagemaker"), client(server, tenant, "batch")
        assert (
            sagemaker.describe_training_job(TrainingJobName=f"{tenant}-train")["TrainingJobStatus"]
            == "InProgress"
        )
        assert (
            batch.describe_jobs(jobs=[residents[tenant]["batch_job"]])["jobs"][0]["status"]
            == "RUNNING"
        )
        assert (
            client(server, tenant, "s3").get_object(Bucket=tenant, Key="secret")["Body"].read()
            == (CANARY + tenant).encode()
        )
        assert not any(
            "forged" in line
            for line in jobs.log_lines(client(server, tenant, "logs"), f"{tenant}-train")
        )
        assert "stolen" not in [
            entry["Key"]
            for entry in client(server, tenant, "s3").list_objects_v2(Bucket=tenant)["Contents"]
        ]
        python_job(
            server, tenant, f"{tenant}-ordinary", "open('/opt/ml/model/weights', 'w').write('w')"
        )
    for tenant in TENANTS:
        sagemaker = client(server, tenant, "sagemaker")
        assert jobs.wait_until(sagemaker, f"{tenant}-ordinary")["TrainingJobStatus"] == "Completed"
        assert client(server, tenant, "s3").head_object(
            Bucket=tenant, Key=f"models/{tenant}-ordinary/output/model.tar.gz"
        )
        sagemaker.stop_training_job(TrainingJobName=f"{tenant}-train")
        client(server, tenant, "batch").terminate_job(
            jobId=residents[tenant]["batch_job"], reason="over"
        )
        assert jobs.wait_until(sagemaker, f"{tenant}-train")["TrainingJobStatus"] == "Stopped"
