"""Tests job definitions of Batch, member by member, through unmodified clients: the effects are
visible inside the container, and unsupported members are rejected with an explanation."""

import json
import os
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient

from tests import debians_boto
from tests.calls import fresh, refusal
from tests.nodes import container, describe, lines, make_queue, of_nodes, submit, wait_until
from tests.trainyard_server import Answer, Server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("shared")
    (path / "below").mkdir()
    (path / "below" / "word").write_text("shared\n")
    os.chown(path, 1000, 1000)
    return path


@pytest.fixture(scope="module")
def cluster(start: Callable[..., Server], shared: pathlib.Path) -> Server:
    return start(f"""[posix_users]
"*" = "1000:1000"
[ulimits]
memlock = -1
[jobs]
stop_grace_seconds = 1
devices = ["/dev/fuse"]
[[machine]]
name = "box"
cpus = 32.0
memory_gib = 32.0
[volumes."/fsx"]
directory = "{shared}"
[volumes."/data"]
directory = "{shared}"
read_only = true
[volumes."/scratch"]
[file_systems."fs-0123456789abcdef0"]
directory = "{shared}"
type = "EFS"
""")


@pytest.fixture(scope="module")
def batch(cluster: Server) -> BaseClient:
    return cluster.boto("batch")


@pytest.fixture(scope="module")
def queue(batch: BaseClient) -> str:
    return make_queue(batch)


def run(
    cluster: Server,
    batch: BaseClient,
    queue: str,
    script: str,
    group: str = "/aws/batch/job",
    **more: Any,
) -> list[str]:
    done = wait_until(batch, submit(batch, queue, container(script, **more)))
    assert done["status"] == "SUCCEEDED", (done["statusReason"], done["container"].get("reason"))
    return lines(cluster, done, group=group)


def mounts(*points: tuple[Any, ...], volumes: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "volumes": volumes,
        "mountPoints": [
            dict(zip(("sourceVolume", "containerPath", "readOnly"), point)) for point in points
        ],
    }


EMPTY_LISTS = (
    "command",
    "environment",
    "mountPoints",
    "resourceRequirements",
    "secrets",
    "ulimits",
    "volumes",
)


def test_descriptions_have_the_empty_lists_of_aws(batch: BaseClient, queue: str) -> None:
    """Terraform compares a definition with its description: AWS adds missing lists as empty ones,
    and leaves vcpus and memory in their members."""
    given = {"image": "trainyard/machine", "command": ["true"], "vcpus": 1, "memory": 128}
    arn = batch.register_job_definition(
        jobDefinitionName="sparse", type="container", containerProperties=given
    )["jobDefinitionArn"]
    (shown,) = batch.describe_job_definitions(jobDefinitions=[arn])["jobDefinitions"]
    empty: dict[str, list[Any]] = {name: [] for name in EMPTY_LISTS}
    assert shown["containerProperties"] == empty | given
    assert shown["parameters"] == {}

    # The command is the image's.
    without = {name: value for name, value in given.items() if name != "command"}
    arn = batch.register_job_definition(
        jobDefinitionName="sparser", type="container", containerProperties=without
    )["jobDefinitionArn"]
    (shown,) = batch.describe_job_definitions(jobDefinitions=[arn])["jobDefinitions"]
    assert shown["containerProperties"] == without | empty

    arn = batch.register_job_definition(
        jobDefinitionName="sparse-nodes",
        type="multinode",
        nodeProperties={
            "numNodes": 1,
            "mainNode": 0,
            "nodeRangeProperties": [{"targetNodes": "0:", "container": given}],
        },
    )["jobDefinitionArn"]
    (shown,) = batch.describe_job_definitions(jobDefinitions=[arn])["jobDefinitions"]
    (of_range,) = shown["nodeProperties"]["nodeRangeProperties"]
    assert of_range["container"] == empty | given

    job = batch.submit_job(jobName="sparse", jobQueue=queue, jobDefinition="sparse")["jobId"]
    (described,) = batch.describe_jobs(jobs=[job])["jobs"]
    assert {name: described["container"][name] for name in empty | given} == empty | given


def test_volumes_of_the_machine_and_of_file_systems(
    cluster: Server, batch: BaseClient, queue: str, shared: pathlib.Path
) -> None:
    said = run(
        cluster,
        batch,
        queue,
        "cat /fsx/below/word /word/word /efs/word; echo written > /fsx/by-$AWS_BATCH_JOB_ID; touch"
        " /word/x 2>&1 | grep -o 'Read-only.*'; ls /scratch /again | wc -w; touch /scratch/own; ls"
        " /again; touch /own/x && ls /twice",
        **mounts(
            ("fsx", "/fsx"),
            ("below", "/word", True),
            ("efs", "/efs", True),
            ("scratch", "/scratch"),
            ("scratch", "/again"),
            ("nameless", "/own"),
            ("nameless", "/twice"),
            volumes=[
                {"name": "fsx", "host": {"sourcePath": "/fsx"}},
                {"name": "below", "host": {"sourcePath": "/fsx/below/"}},
                {
                    "name": "efs",
                    "efsVolumeConfiguration": {
                        "fileSystemId": "fs-0123456789abcdef0",
                        "rootDirectory": "/below",
                    },
                },
                {"name": "scratch", "host": {"sourcePath": "/scratch"}},
                {"name": "nameless"},
            ],
        ),
    )
    assert said == ["shared"] * 3 + ["Read-only file system", "2", "own", "x"]
    assert [path.read_text() for path in shared.glob("by-*")] == ["written\n"]


def test_volumes_that_are_not_for_jobs(batch: BaseClient, queue: str) -> None:
    def why(volume: dict[str, Any], *point: Any) -> str:
        return refusal(
            submit,
            batch=batch,
            queue=queue,
            properties=container(**mounts(point or ("v", "/v"), volumes=[{"name": "v"} | volume])),
        )

    assert '[volumes."/etc"]' in why({"host": {"sourcePath": "/etc"}}) and "/fsx, /scratch" in why(
        {"host": {"sourcePath": "/etc"}}
    )
    assert "without .." in why({"host": {"sourcePath": "/fsx/../etc"}})
    assert "read-only by this server's config" in why({"host": {"sourcePath": "/data"}})
    assert "fs-none" in why({"efsVolumeConfiguration": {"fileSystemId": "fs-none"}})
    assert "access point" in why(
        {
            "efsVolumeConfiguration": {
                "fileSystemId": "fs-0123456789abcdef0",
                "authorizationConfig": {"accessPointId": "fsap-1"},
            }
        }
    )
    assert "not the name of one of the volumes" in why({}, "w", "/v")
    assert "absolute path" in why({}, "v", "v") and "absolute path" in why({}, "v", "/")


def test_a_link_on_a_shared_directory_does_not_lead_out_of_it(
    cluster: Server, batch: BaseClient, queue: str, shared: pathlib.Path
) -> None:
    (shared / "way-out").symlink_to("/etc")
    job = submit(
        batch,
        queue,
        container(
            "ls /v",
            **mounts(("v", "/v"), volumes=[{"name": "v", "host": {"sourcePath": "/fsx/way-out"}}]),
        ),
    )
    done = wait_until(batch, job)
    assert done["status"] == "FAILED" and done["statusReason"] == "Task failed to start", done
    assert "/v cannot be used" in done["container"]["reason"]


def test_limits_and_linux_parameters(cluster: Server, batch: BaseClient, queue: str) -> None:
    done = wait_until(
        batch,
        submit(
            batch,
            queue,
            container(
                "ulimit -Sn; ulimit -Hn; ulimit -l; df -m /dev/shm | awk 'END {print $2}'; df -m"
                " /small | awk 'END {print $2}'; ls /dev/fuse; tr '\\0' ' ' < /proc/1/cmdline | cut"
                " -d' ' -f1,2",
                ulimits=[
                    {"name": "nofile", "softLimit": 1234, "hardLimit": 4321},
                    {"name": "memlock", "softLimit": -1, "hardLimit": -1},
                ],
                linuxParameters={
                    "sharedMemorySize": 32,
                    "tmpfs": [
                        {"containerPath": "/small", "size": 16, "mountOptions": ["rw", "nosuid"]}
                    ],
                    "initProcessEnabled": True,
                    "devices": [{"hostPath": "/dev/fuse"}],
                    "maxSwap": 0,
                    "swappiness": 60,
                },
            ),
        ),
    )
    assert done["status"] == "SUCCEEDED", (done["statusReason"], done["container"].get("reason"))
    said = lines(cluster, done)
    assert said[:2] + said[3:] == [
        "1234",
        "4321",
        "32",
        "16",
        "/dev/fuse",
        "/opt/trainyard/entry --init",
    ]
    # What the machine does not let its root raise is said.
    found = cluster.boto("logs").get_log_events(
        logGroupName="/aws/batch/job",
        logStreamName=done["container"]["logStreamName"],
        startFromHead=True,
    )["events"]
    assert said[2] == "unlimited" or any(
        "the limit memlock is" in event["message"] for event in found
    ), found


def test_the_program_is_the_first_process_where_that_is_requested(
    cluster: Server, batch: BaseClient, queue: str
) -> None:
    script = "tr '\\0' ' ' < /proc/1/cmdline | cut -d' ' -f1,2"
    assert run(cluster, batch, queue, script) == ["/opt/trainyard/entry --init"]
    first = run(cluster, batch, queue, script, linuxParameters={"initProcessEnabled": False})
    assert first == ["/bin/sh -c"]


def test_the_first_process_passes_signals_on(
    cluster: Server, batch: BaseClient, queue: str
) -> None:
    job = submit(
        batch,
        queue,
        container(
            "trap 'echo told; exit 7' TERM; echo ready; while :; do sleep 0.1; done",
            linuxParameters={"initProcessEnabled": True},
        ),
    )
    wait_until(batch, job, ("RUNNING",))
    batch.terminate_job(jobId=job, reason="enough")
    done = wait_until(batch, job)
    assert lines(cluster, done)[-1] in ("told", "ready")


def test_user_and_root(cluster: Server, batch: BaseClient, queue: str) -> None:
    script = (
        "id -u; id -g; touch /etc/x 2>&1 | grep -o 'Permission denied\\|Read-only file system';"
        " touch /tmp/x && echo tmp"
    )
    assert run(cluster, batch, queue, script, user="nobody", readonlyRootFilesystem=True) == [
        "65534",
        "65534",
        "Read-only file system",
        "tmp",
    ]
    assert run(cluster, batch, queue, script, user="1000:100")[:2] == ["1000", "100"]
    done = wait_until(batch, submit(batch, queue, container("true", user="no-such-user")))
    assert done["status"] == "FAILED" and "no-such-user" in done["container"]["reason"]


def test_a_job_may_name_its_log_group(cluster: Server, batch: BaseClient, queue: str) -> None:
    options = {
        "awslogs-group": "own/group",
        "awslogs-stream-prefix": "prefix",
        "awslogs-region": cluster.env["AWS_DEFAULT_REGION"],
    }
    job = submit(
        batch,
        queue,
        container("echo said", logConfiguration={"logDriver": "awslogs", "options": options}),
    )
    done = wait_until(batch, job)
    assert done["container"]["logStreamName"].startswith("prefix/default/") and lines(
        cluster, done, group="own/group"
    ) == ["said"]
    for driver, changed, word in (
        ("json-file", {}, "json-file"),
        ("awslogs", {"awslogs-multiline-pattern": "^x"}, "multiline"),
        ("awslogs", {"awslogs-region": "eu-north-9"}, "region"),
    ):
        assert word in refusal(
            submit,
            batch=batch,
            queue=queue,
            properties=container(logConfiguration={"logDriver": driver, "options": changed}),
        )


def test_unsupported_settings_are_rejected(batch: BaseClient, queue: str) -> None:
    for member, word in (
        ({"privileged": True}, "privileged"),
        ({"secrets": [{"name": "A", "valueFrom": "arn:aws:ssm:x"}]}, "secrets"),
        ({"linuxParameters": {"maxSwap": 64}}, "maxSwap"),
        ({"linuxParameters": {"devices": [{"hostPath": "/dev/kvm"}]}}, "[jobs]"),
        (
            {
                "linuxParameters": {
                    "tmpfs": [{"containerPath": "/t", "size": 1, "mountOptions": ["noexec"]}]
                }
            },
            "noexec",
        ),
        ({"ulimits": [{"name": "nothing", "softLimit": 1, "hardLimit": 1}]}, "nofile"),
        ({"ulimits": [{"name": "rtprio", "softLimit": 1, "hardLimit": 1}]}, "[ulimits] rtprio"),
        ({"ulimits": [{"name": "nice", "softLimit": 1, "hardLimit": -1}]}, "[ulimits] nice"),
        ({"ulimits": [{"name": "nofile", "softLimit": 2, "hardLimit": 1}]}, "hard limit"),
        ({"repositoryCredentials": {"credentialsParameter": "x"}}, "repositoryCredentials"),
    ):
        assert word in refusal(submit, batch=batch, queue=queue, properties=container(**member))
    eks = batch.register_job_definition(
        jobDefinitionName=fresh("eks"),
        type="container",
        eksProperties={"podProperties": {"containers": [{"image": "x"}]}},
    )
    assert "eksProperties" in refusal(
        batch.submit_job, jobName="x", jobQueue=queue, jobDefinition=eks["jobDefinitionArn"]
    )
    assert batch.describe_job_definitions(jobDefinitions=[eks["jobDefinitionArn"]])[
        "jobDefinitions"
    ][0]["eksProperties"]["podProperties"]["containers"] == [{"image": "x"}]
    many = [{"name": f"V{number}", "value": "x" * 100} for number in range(300)]
    assert "24576 bytes" in refusal(
        submit, batch=batch, queue=queue, properties=container(environment=many)
    )


def test_a_task_of_one_container_is_a_container(
    cluster: Server, batch: BaseClient, queue: str
) -> None:
    task = {
        "containers": [
            container(
                "echo $WORD; id -u",
                name="main",
                essential=True,
                user="1000",
                environment=[{"name": "WORD", "value": "one"}],
            )
        ],
        "taskRoleArn": "arn:aws:iam::123456789012:role/task",
    }
    made = batch.register_job_definition(
        jobDefinitionName=fresh("task"), type="container", ecsProperties={"taskProperties": [task]}
    )["jobDefinitionArn"]
    job = batch.submit_job(
        jobName="task",
        jobQueue=queue,
        jobDefinition=made,
        ecsPropertiesOverride={
            "taskProperties": [
                {
                    "containers": [
                        {"name": "main", "environment": [{"name": "WORD", "value": "other"}]}
                    ]
                }
            ]
        },
    )["jobId"]
    done = wait_until(batch, job)
    assert done["status"] == "SUCCEEDED" and lines(cluster, done) == ["other", "1000"]
    two = {"containers": [container(name="a"), container(name="b")]}
    made = batch.register_job_definition(
        jobDefinitionName=fresh("tasks"), type="container", ecsProperties={"taskProperties": [two]}
    )["jobDefinitionArn"]
    assert "one container" in refusal(
        batch.submit_job, jobName="x", jobQueue=queue, jobDefinition=made
    )


def test_ranges_of_nodes_are_validated_at_registration(batch: BaseClient, queue: str) -> None:
    def why(nodes: int = 4, main: int = 0, **ranges: int) -> str:
        given = {name.strip("n").replace("_", ":"): container() for name in ranges} or None
        return refusal(
            batch.register_job_definition,
            jobDefinitionName=fresh("n"),
            type="multinode",
            nodeProperties=of_nodes("true", nodes, main, ranges=given),
        )

    assert "node 3 of 4 is in no range" in why(n0_2=1)
    assert (
        "goes beyond" in why(n0_4=1)
        and "overlap" in why(n0_2=1, n1_3=1)
        and "must be a range" in why(n3_1=1)
    )
    assert "mainNode must be between 0 and 3" in why(main=4) and "between 1 and 1000" in why(
        nodes=1001
    )
    assert "one to 5 ranges" in why(nodes=6, n0=1, n1=1, n2=1, n3=1, n4=1, n5=1)
    reserved = of_nodes("true", environment=[{"name": "AWS_BATCH_X", "value": "1"}])
    assert "AWS_BATCH_" in refusal(
        batch.register_job_definition,
        jobDefinitionName=fresh("n"),
        type="multinode",
        nodeProperties=reserved,
    )
    assert "nodeProperties is required" in refusal(
        batch.register_job_definition, jobDefinitionName=fresh("n"), type="multinode"
    )
    closed = batch.register_job_definition(
        jobDefinitionName=fresh("n"),
        type="multinode",
        nodeProperties=of_nodes("true", 2, ranges={"0:1": container()}),
    )["jobDefinitionArn"]
    assert "no end" in refusal(
        batch.submit_job,
        jobName="x",
        jobQueue=queue,
        jobDefinition=closed,
        nodeOverrides={"numNodes": 3},
    )
    assert "nodeOverrides" in refusal(
        batch.submit_job,
        jobName="x",
        jobQueue=queue,
        jobDefinition=closed,
        containerOverrides={"command": ["true"]},
    )
    assert "array" in refusal(
        batch.submit_job,
        jobName="x",
        jobQueue=queue,
        jobDefinition=closed,
        arrayProperties={"size": 2},
    )
    roles = {
        "0": container(jobRoleArn="arn:aws:iam::123456789012:role/a"),
        "1": container(jobRoleArn="arn:aws:iam::123456789012:role/b"),
    }
    assert "roles" in refusal(
        submit, batch=batch, queue=queue, properties=of_nodes("", 2, ranges=roles)
    )


def test_nodes_by_the_command_lines_and_an_older_boto3(
    cluster: Server, aws: Callable[..., Answer], queue: str
) -> None:
    name = fresh("by-hand")
    properties = of_nodes("echo Ref::word $AWS_BATCH_JOB_NODE_INDEX", 2)
    aws(
        "batch",
        "register-job-definition",
        "--job-definition-name",
        name,
        "--type",
        "multinode",
        "--parameters",
        "word=hello",
        "--node-properties",
        json.dumps(properties),
    )
    job = cluster.aws(
        "batch",
        "submit-job",
        "--job-name",
        "by-hand",
        "--job-queue",
        queue,
        "--job-definition",
        name,
        "--node-overrides",
        '{"nodePropertyOverrides": [{"targetNodes": "0:0", "containerOverrides": {"command":'
        ' ["/bin/echo", "Ref::word", "main"]}}]}',
    )["jobId"]
    batch = cluster.boto("batch")
    assert wait_until(batch, job)["status"] == "SUCCEEDED"
    assert lines(cluster, describe(batch, f"{job}#0")) == ["hello main"]
    shown = aws("batch", "describe-jobs", "--jobs", f"{job}#1")["jobs"][0]
    assert (
        shown["nodeDetails"] == {"nodeIndex": 1, "isMainNode": False}
        and shown["container"]["command"][2] == "echo hello $AWS_BATCH_JOB_NODE_INDEX"
    )
    assert [
        one["jobId"]
        for one in debians_boto.call(
            cluster, "batch", "list_jobs", multiNodeJobId=job, jobStatus="SUCCEEDED"
        )["jobSummaryList"]
    ][0] == f"{job}#0"


@pytest.fixture(params=["/usr/bin/aws", None], ids=["debians", "todays"])
def aws(request: pytest.FixtureRequest, cluster: Server) -> Callable[..., Answer]:
    return lambda *arguments, **more: cluster.aws(
        *arguments, **(more | ({"program": request.param} if request.param else {}))
    )
