"""Tests campaigns: rows of a catalogue become jobs in regions, and a loop of the server runs
them."""

import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests import campaigns, jobs, nodes, trainyard_server
from tests.trainyard_server import Server, wait_for

KEY = ("AKIAREMOTEREGION00001", "remote-secret-of-the-other-server-000001")
SECONDS_MAX = 90


def cluster(
    server: Server, *arguments: str, check: bool = True, seconds_max: float = SECONDS_MAX
) -> subprocess.CompletedProcess[str]:
    """Runs the CLI without a terminal."""
    done = subprocess.run(
        [trainyard_server.PROGRAM, *arguments],
        env=server.environment(),
        capture_output=True,
        text=True,
        timeout=seconds_max,
    )
    assert not check or done.returncode == 0, (
        f"trainyard {' '.join(arguments)}: {done.stdout}\n{done.stderr}"
    )
    return done


def campaign_file(
    folder: str | os.PathLike[str], name: str, query: str, script: str = "true", **more: Any
) -> str:
    """Returns a campaign of /bin/sh jobs. `job`: additions to the job's short form; `batch_job`
    replaces it."""
    job = {
        "image": "trainyard/host",
        "command": ["/bin/sh", "-c"],
        "arguments": [script],
        "instance_type": "ml.t3.medium",
        "volume_gib": 1,
        "max_runtime_seconds": 300,
    } | more.pop("job", {})
    campaign = {"name": name, "query": query} | more
    if "batch_job" not in campaign:
        campaign["training_job"] = job
    path = os.path.join(str(folder), f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(campaign, file)
    return path


def described(server: Server, name: str) -> dict[str, Any]:
    return json.loads(cluster(server, "campaign", "show", name, "--json").stdout)


def finished(server: Server, name: str) -> dict[str, Any]:
    return campaigns.finished(described, server, name)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("campaigns")


@pytest.fixture(scope="module")
def remote(place: pathlib.Path) -> Iterator[Server]:
    """Starts the region eu-west-1: a separate server with its own keys."""
    running = trainyard_server.Server(
        place / "remote",
        f'region = "eu-west-1"\n[[access_key]]\nid = "{KEY[0]}"\nsecret ='
        f' "{KEY[1]}"\n[network]\npool = "10.214.0.0/16"\n[jobs]\nstop_grace_seconds = 1\n',
    ).start()
    yield running
    running.clean()


@pytest.fixture(scope="module")
def home(place: pathlib.Path, remote: Server) -> Iterator[Server]:
    """Starts a server with a local partition (us-west-2) and a region that is another server
    (eu-west-1)."""
    config = f"""
[network]
pool = "10.213.0.0/16"
[jobs]
stop_grace_seconds = 1
[regions.us-west-2]
[regions.eu-west-1]
endpoint = "{remote.env["AWS_ENDPOINT_URL"]}"
access_key_id = "{KEY[0]}"
secret_access_key = "{KEY[1]}"
[[prices.instance]]
type = "ml.t3.medium"
region = "us-west-2"
on_demand = 0.02
spot = 0.01
"""
    running = trainyard_server.Server(place / "home", config).start()
    yield running
    running.clean()


DATASETS = """
INSERT INTO datasets (name, region, uri, bytes) VALUES
  ('oregon', 'us-west-2', 's3://drives/oregon/', 12), ('virginia', 'us-east-1', 's3://drives/virginia/', 12),
  ('ireland', 'eu-west-1', 's3://drives-eu/ireland/', 12);
"""


@pytest.fixture(scope="module")
def catalogue(home: Server, remote: Server) -> Server:
    assert "3 rows changed" in cluster(home, "campaign", "change", DATASETS).stdout
    s3 = home.boto("s3")
    s3.create_bucket(Bucket="drives")
    for name in ("oregon", "virginia"):
        s3.put_object(Bucket="drives", Key=f"{name}/part", Body=f"hello {name}\n".encode())
    # A request to the home server that is signed for the other region reaches that server's store.
    there = home.boto("s3", region_name="eu-west-1")
    there.create_bucket(
        Bucket="drives-eu", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
    )
    there.put_object(
        Bucket="drives-eu", Key="ireland/part", Body=b"hello ireland\n", Metadata={"camera": "4K"}
    )
    return home


def test_rows_become_jobs_where_the_data_lies(
    catalogue: Server, remote: Server, place: pathlib.Path
) -> None:
    file = campaign_file(
        place,
        "streets",
        "SELECT name, region, uri AS data, bytes, length(name) * 0.1 AS lr FROM datasets ORDER BY"
        " name",
        "cat /opt/ml/input/data/train/part; echo score=$(grep -o 0[.0-9]*"
        " /opt/ml/input/config/hyperparameters.json) rate=100",
        results={"best": "score", "rate": "rate"},
        job={
            "channels": {"train": "{job.data}"},
            "hyperparameters": {"lr": "{lr}", "epochs": 3},
            "metrics": {"score": "score=([0-9.]+)", "rate": "rate=([0-9.]+)"},
        },
    )
    plan = cluster(catalogue, "campaign", "run", file, "--dry-run").stdout
    assert (
        "3 jobs in 3 regions: eu-west-1 1 us-east-1 1 us-west-2 1" in plan and "epochs=3" in plan
    ), plan
    assert "HyperParameters.lr: 0.6, 0.7, 0.8" in plan and "the data is there" in plan, plan
    assert cluster(catalogue, "campaign", "list").stdout.count("\n") == 1  # nothing was kept

    done = cluster(catalogue, "campaign", "run", file)
    assert "best: row 3, virginia, score 0.8, lr=0.8" in done.stdout, done.stdout
    assert "streets Completed" in done.stdout and "us-west-2: 1/1 done" in done.stdout, done.stdout
    seen = described(catalogue, "streets")
    assert {row["Region"]: row["State"] for row in seen["Rows"]} == {
        "us-west-2": "completed",
        "us-east-1": "completed",
        "eu-west-1": "completed",
    }
    assert seen["Same"] == [{"Name": "epochs", "Value": "3"}]
    # The remote region's job and its log are on the other server, and are reached through this one.
    there = remote.boto("sagemaker").describe_training_job(TrainingJobName="streets-1")
    assert there["TrainingJobStatus"] == "Completed" and there["HyperParameters"] == {
        "lr": "0.7",
        "epochs": "3",
    }
    assert "hello ireland" in jobs.log_lines(remote.boto("logs"), "streets-1")
    assert "hello ireland" in jobs.log_lines(
        catalogue.boto("logs", region_name="eu-west-1"), "streets-1"
    )
    assert all(region["SamplesPerSecond"] == 100 for region in seen["Regions"])


def test_requests_for_a_remote_region_are_passed_on(catalogue: Server, remote: Server) -> None:
    batch = catalogue.boto("batch", region_name="eu-west-1")
    made = batch.create_compute_environment(
        computeEnvironmentName="there",
        type="MANAGED",
        computeResources={
            "type": "EC2",
            "minvCpus": 0,
            "maxvCpus": 4,
            "instanceTypes": ["optimal"],
            "subnets": [],
            "instanceRole": "r",
        },
    )
    assert ":eu-west-1:" in made["computeEnvironmentArn"]
    assert [
        one["computeEnvironmentName"]
        for one in remote.boto("batch").describe_compute_environments()["computeEnvironments"]
    ] == ["there"]
    assert catalogue.boto("batch").describe_compute_environments()["computeEnvironments"] == []
    with pytest.raises(batch.exceptions.ClientException, match="does not exist"):
        batch.list_jobs(jobQueue="nowhere")
    s3 = catalogue.boto("s3", region_name="eu-west-1")
    head = s3.head_object(Bucket="drives-eu", Key="ireland/part")
    assert head["ContentLength"] == 14 and head["Metadata"] == {"camera": "4K"}
    assert (
        s3.get_object(Bucket="drives-eu", Key="ireland/part", Range="bytes=6-")["Body"].read()
        == b"ireland\n"
    )
    assert [one["Key"] for one in s3.list_objects_v2(Bucket="drives-eu")["Contents"]] == [
        "ireland/part"
    ]
    with pytest.raises(s3.exceptions.ClientError, match="NoSuchKey"):
        s3.get_object(Bucket="drives-eu", Key="nothing")
    big = os.urandom(9 << 20)
    s3.put_object(Bucket="drives-eu", Key="big & odd/ü", Body=big, ChecksumAlgorithm="SHA256")
    assert remote.boto("s3").get_object(Bucket="drives-eu", Key="big & odd/ü")["Body"].read() == big
    assert s3.get_object(Bucket="drives-eu", Key="big & odd/ü")["Body"].read() == big
    s3.delete_object(Bucket="drives-eu", Key="big & odd/ü")


def test_failed_rows_are_retried_and_rejected_rows_are_not(
    catalogue: Server, place: pathlib.Path
) -> None:
    script = (
        "[ $(echo $SM_TRAINING_ENV | grep -c again-1-2) = 1 ] || [ $TRAINING_JOB_NAME = again-1-2 ]"
        " || { echo no; exit 3; }"
    )
    file = campaign_file(
        place, "again", "SELECT 'x' AS name, 'us-east-1' AS region", script, retries=2
    )
    done = cluster(catalogue, "campaign", "run", file)
    row = described(catalogue, "again")["Rows"][0]
    assert (row["Attempts"], row["State"]) == (2, "completed"), (row, done.stdout)
    assert described(catalogue, "again")["Regions"][0]["TriedAgain"] == 1
    refused = campaign_file(
        place,
        "refused",
        "SELECT 'x' AS name, 'us-east-1' AS region",
        retries=2,
        job={"instance_type": "ml.none.large"},
    )
    done = cluster(catalogue, "campaign", "run", refused, check=False)
    row = described(catalogue, "refused")["Rows"][0]
    assert (
        done.returncode == 3
        and row["State"] == "failed"
        and row["Attempts"] == 1
        and row["Reason"].startswith("refused: ")
    ), row


def test_messages_for_what_is_wrong(catalogue: Server, place: pathlib.Path) -> None:
    def refusal(**wrong: Any) -> str:
        good = {"name": "wrong", "query": "SELECT 1 AS x"} | wrong
        done = cluster(catalogue, "campaign", "run", campaign_file(place, **good), check=False)
        assert done.returncode == 1
        return done.stderr

    assert "no such table: absent" in refusal(query="SELECT * FROM absent")
    assert "a query must read" in refusal(query="DELETE FROM datasets")
    assert "more than one statement" in refusal(query="SELECT 1; DROP TABLE datasets")
    assert "unknown name {y}; known names: campaign" in refusal(
        job={"hyperparameters": {"lr": "{y}"}}
    )
    assert "campaign 'streets' already exists" in refusal(name="streets")
    assert 'placement.rule "capacity" is for [training_job]' in refusal(
        placement={"rule": "capacity"}, batch_job={"jobQueue": "q", "jobDefinition": "d"}
    )
    assert (
        "not authorized"
        in cluster(catalogue, "campaign", "change", "ATTACH '/etc/x' AS y", check=False).stderr
    )
    assert (
        "campaign 'nobody' not found"
        in cluster(catalogue, "campaign", "show", "nobody", check=False).stderr
    )


def test_data_is_brought_to_where_a_host_is_cheapest(
    catalogue: Server, place: pathlib.Path
) -> None:
    cluster(
        catalogue,
        "campaign",
        "change",
        "INSERT INTO transfer_prices VALUES ('eu-west-1', 'us-west-2', 0.02)",
    )
    query = (
        "SELECT name, region, uri AS data, 1073741824 AS bytes, 3 AS hours FROM datasets WHERE name"
        " = 'ireland'"
    )
    file = campaign_file(
        place,
        "brought",
        query,
        "cat /opt/ml/input/data/train/part; echo /opt/ml/input/data/train",
        placement={"rule": "cheapest", "copy_to": "s3://copies-{job.region}/{name}/"},
        job={"channels": {"train": "{job.data}"}},
    )
    plan = cluster(catalogue, "campaign", "run", file, "--dry-run").stdout
    assert (
        "the cheapest" in plan and "us-west-2 1" in plan and "1.0 GiB to copy, 0.020 USD" in plan
    ), plan
    done = cluster(catalogue, "campaign", "run", file)
    row = described(catalogue, "brought")["Rows"][0]
    assert (row["Region"], row["State"], row["BytesCopied"], row["BytesTotal"]) == (
        "us-west-2",
        "completed",
        14,
        14,
    ), (row, done.stdout)
    copied = catalogue.boto("s3").head_object(Bucket="copies-us-west-2", Key="ireland/part")
    assert copied["ContentLength"] == 14
    assert "hello ireland" in jobs.log_lines(
        catalogue.boto("logs", region_name="us-west-2"), "brought-1"
    )
    assert described(catalogue, "brought")["Regions"][0]["CopyCost"] == pytest.approx(
        14 / 2**30 * 0.02
    )
    file = campaign_file(
        place,
        "brought-again",
        query,
        placement={"rule": "cheapest", "copy_to": "s3://copies-{job.region}/{name}/"},
        job={"channels": {"train": "{job.data}"}},
    )
    cluster(catalogue, "campaign", "run", file)
    again = described(catalogue, "brought-again")
    assert (again["Rows"][0]["BytesCopied"], again["Regions"][0]["CopyCost"]) == (
        14,
        0,
    ), "it was there"


def test_a_copy_continues_where_the_server_was_killed(
    catalogue: Server, remote: Server, place: pathlib.Path
) -> None:
    bodies = {f"large/{i:02}": os.urandom(8 << 20) for i in range(24)}
    there = remote.boto("s3")
    for key, body in bodies.items():
        there.put_object(Bucket="drives-eu", Key=key, Body=body)
    query = (
        "SELECT 'large' AS name, 'eu-west-1' AS region, 's3://drives-eu/large/' AS data, 201326592"
        " AS bytes, 3 AS hours"
    )
    file = campaign_file(
        place,
        "goes-on",
        query,
        "ls /opt/ml/input/data/train | wc -l",
        placement={
            "rule": "cheapest",
            "regions": ["us-west-2"],
            "copy_to": "s3://copies-{job.region}/{name}/",
        },
        job={"channels": {"train": "{job.data}"}},
    )
    cluster(catalogue, "campaign", "run", file, "--detach")
    total = sum(map(len, bodies.values()))
    amid = wait_for(
        lambda: described(catalogue, "goes-on")["Rows"][0].get("BytesCopied", 0),
        "some of the copy",
        interval_seconds=0.01,
    )
    catalogue.kill()
    assert amid < total, "killed in its middle"
    catalogue.start()
    s3 = catalogue.boto("s3")
    began = {
        one["Key"]: one["LastModified"]
        for one in s3.list_objects_v2(Bucket="copies-us-west-2", Prefix="large/").get(
            "Contents", []
        )
    }
    seen = finished(catalogue, "goes-on")
    row = seen["Rows"][0]
    assert (seen["Status"], row["State"], row["BytesCopied"]) == (
        "Completed",
        "completed",
        total,
    ), row
    assert seen["Regions"][0]["CopyCost"] <= total / 2**30 * 0.02, "nothing was charged twice"
    copies = {
        one["Key"]: one["LastModified"]
        for one in s3.list_objects_v2(Bucket="copies-us-west-2", Prefix="large/")["Contents"]
    }
    assert all(
        s3.get_object(Bucket="copies-us-west-2", Key=key)["Body"].read() == body
        for key, body in bodies.items()
    )
    assert copies == copies | began, "what was there was not copied again"
    assert "24" in jobs.log_lines(catalogue.boto("logs", region_name="us-west-2"), "goes-on-1")


def test_rows_may_become_jobs_of_batch(catalogue: Server, place: pathlib.Path) -> None:
    batch = catalogue.boto("batch", region_name="us-west-2")
    environment = batch.create_compute_environment(
        computeEnvironmentName="yard",
        type="MANAGED",
        computeResources={
            "type": "EC2",
            "minvCpus": 0,
            "maxvCpus": 4,
            "instanceTypes": ["optimal"],
            "subnets": [],
            "instanceRole": "r",
        },
    )["computeEnvironmentArn"]
    batch.create_job_queue(
        jobQueueName="campaigns",
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
    )
    batch.register_job_definition(
        jobDefinitionName="say",
        type="container",
        containerProperties={
            "image": "trainyard/host",
            "command": ["/bin/sh", "-c", "echo said $WORD; [ $WORD != b ]"],
            "resourceRequirements": [
                {"type": "VCPU", "value": "0.25"},
                {"type": "MEMORY", "value": "64"},
            ],
        },
    )
    file = campaign_file(
        place,
        "words",
        "SELECT 'a' AS name, 'us-west-2' AS region UNION ALL SELECT 'b', 'us-west-2'",
        batch_job={
            "jobQueue": "campaigns",
            "jobDefinition": "say",
            "containerOverrides": {"environment": [{"name": "WORD", "value": "{name}"}]},
        },
    )
    assert cluster(catalogue, "campaign", "run", file, check=False).returncode == 3
    rows = described(catalogue, "words")["Rows"]
    assert [row["State"] for row in rows] == [
        "completed",
        "failed",
    ] and "Essential container" in rows[1]["Reason"], rows
    assert batch.describe_jobs(jobs=[rows[0]["Job"]])["jobs"][0]["jobName"] == "words-1"


def test_an_object_writes_a_row_and_the_row_starts_its_job(
    catalogue: Server, place: pathlib.Path
) -> None:
    s3 = catalogue.boto("s3")
    s3.create_bucket(Bucket="incoming")
    # it existed before the first check
    s3.put_object(Bucket="incoming", Key="before.bin", Body=b"1234")
    file = campaign_file(
        place,
        "arrivals",
        "SELECT name, region, uri AS data, bytes FROM datasets WHERE name LIKE 'new-%' ORDER BY"
        " name",
        "ls /opt/ml/input/data/train",
        standing=True,
        job={"channels": {"train": "{job.data}"}},
        watch=[
            {
                "uri": "s3://incoming/",
                "suffix": ".bin",
                "row": {
                    "name": "new-{stem}",
                    "region": "{region}",
                    "uri": "{uri}",
                    "bytes": "{bytes}",
                },
            }
        ],
    )
    assert cluster(catalogue, "campaign", "run", file).stdout == "arrivals\n"

    def done(names: Sequence[str]) -> bool:
        return wait_for(
            lambda: (
                {row["Label"]: row["State"] for row in described(catalogue, "arrivals")["Rows"]}
                == dict.fromkeys(names, "completed")
            ),
            f"jobs of {names}",
        )

    done(["new-before"])
    s3.put_object(Bucket="incoming", Key="ignored.txt", Body=b"-")
    s3.put_object(Bucket="incoming", Key="later.bin", Body=b"12")
    done(["new-before", "new-later"])
    catalogue.kill()
    catalogue.start()
    catalogue.boto("s3").put_object(Bucket="incoming", Key="after.bin", Body=b"12")
    done(["new-before", "new-later", "new-after"])
    assert (
        "new-later"
        in cluster(
            catalogue, "campaign", "query", "SELECT name, bytes FROM datasets WHERE bytes = 2"
        ).stdout
    )
    cluster(catalogue, "campaign", "stop", "arrivals")
    assert finished(catalogue, "arrivals")["Status"] == "Stopped"


def test_a_killed_server_continues_and_submits_nothing_twice(
    catalogue: Server, remote: Server, place: pathlib.Path
) -> None:
    query = (
        "SELECT 'a' AS name, 'us-east-1' AS region UNION ALL SELECT 'b', 'us-west-2' UNION ALL"
        " SELECT 'c', 'eu-west-1' UNION ALL SELECT 'd', 'eu-west-1' UNION ALL SELECT 'e',"
        " 'eu-west-1'"
    )
    sagemaker = remote.boto("sagemaker")
    remote.boto("s3").create_bucket(Bucket="yard")
    sagemaker.create_training_job(**jobs.request("killed-5"))  # the name is in use
    jobs.wait_until(sagemaker, "killed-5")
    file = campaign_file(place, "killed", query, "sleep 3", at_once=1)
    cluster(catalogue, "campaign", "run", file, "--detach")
    for _ in range(3):
        catalogue.kill()
        catalogue.start()
    seen = finished(catalogue, "killed")
    assert [(row["State"], row["Attempts"]) for row in seen["Rows"]] == [("completed", 1)] * 4 + [
        ("failed", 1)
    ], seen["Rows"]
    assert (
        seen["Rows"][4]["Reason"]
        == "refused: the name is taken by a job that is not this campaign's, killed-5"
    )
    there = sagemaker.list_training_jobs(NameContains="killed-")["TrainingJobSummaries"]
    assert sorted(job["TrainingJobName"] for job in there) == ["killed-3", "killed-4", "killed-5"]


def test_a_campaign_from_an_earlier_version_without_ids_continues(
    catalogue: Server, place: pathlib.Path
) -> None:
    cluster(
        catalogue,
        "campaign",
        "run",
        campaign_file(place, "before", "SELECT 'a' AS name, 'us-east-1' AS region", "sleep 3"),
        "--detach",
    )
    wait_for(lambda: described(catalogue, "before")["Regions"][0]["Running"] == 1, "its job to run")
    catalogue.kill()
    with contextlib.closing(sqlite3.connect(os.path.join(catalogue.data, "campaigns.db"))) as kept:
        kept.execute("DROP TABLE ids")
        kept.commit()
    catalogue.start()
    seen = finished(catalogue, "before")
    assert seen["Status"] == "Completed" and seen["Rows"][0]["Attempts"] == 1, seen["Rows"]


def test_a_lost_region_is_picked_up_again(
    catalogue: Server, remote: Server, place: pathlib.Path
) -> None:
    query = "SELECT 'a' AS name, 'us-east-1' AS region UNION ALL SELECT 'b', 'eu-west-1'"
    cluster(
        catalogue,
        "campaign",
        "run",
        campaign_file(place, "lost", query, "sleep 2; echo done"),
        "--detach",
    )

    def region(name: str) -> dict[str, Any]:
        return next(one for one in described(catalogue, "lost")["Regions"] if one["Region"] == name)

    wait_for(lambda: region("eu-west-1")["Running"] == 1, "its job to run")
    remote.kill()
    wait_for(
        lambda: not region("eu-west-1")["Answers"] and region("us-east-1")["Completed"] == 1,
        "the region to be missed and the other to continue",
    )
    assert described(catalogue, "lost")["Status"] == "InProgress"
    with pytest.raises(Exception, match="does not answer"):
        catalogue.boto("sagemaker", region_name="eu-west-1").list_training_jobs()
    remote.start()
    seen = finished(catalogue, "lost")
    assert seen["Status"] == "Completed" and [row["Attempts"] for row in seen["Rows"]] == [1, 1]


def test_a_stopped_campaign_stops_its_jobs(
    catalogue: Server, remote: Server, place: pathlib.Path
) -> None:
    query = (
        "SELECT 'a' AS name, 'us-east-1' AS region UNION ALL SELECT 'b', 'eu-west-1' UNION ALL"
        " SELECT 'c', 'eu-west-1'"
    )
    cluster(
        catalogue,
        "campaign",
        "run",
        campaign_file(place, "stopped", query, "sleep 300", at_once=1),
        "--detach",
    )
    wait_for(
        lambda: sum(one["Running"] for one in described(catalogue, "stopped")["Regions"]) == 2,
        "two jobs to run",
    )
    cluster(catalogue, "campaign", "stop", "stopped")
    seen = finished(catalogue, "stopped")
    assert [row["State"] for row in seen["Rows"]] == ["stopped"] * 3 and [
        row["Attempts"] for row in seen["Rows"]
    ] == [1, 1, 0]
    with pytest.raises(Exception):
        remote.boto("sagemaker").describe_training_job(TrainingJobName="stopped-3")


GRID = (
    "SELECT 'lr ' || lr.value AS name, '' AS region, lr.value AS lr FROM json_each('[1, 2, 3]')"
    " AS lr"
)
ACCURACY = {"trainyard:metric:accuracy": "accuracy=([0-9.]+)"}


def test_a_grid_over_multi_node_jobs_ends_in_one_table(
    catalogue: Server, place: pathlib.Path
) -> None:
    batch = catalogue.boto("batch")
    # The main node's metric is the result; the best one is in the middle of the grid.
    script = (
        "[ $AWS_BATCH_JOB_NODE_INDEX = 0 ] || exec sleep 60; echo accuracy=0.$((90 - (Ref::lr - 2)"
        " * (Ref::lr - 2)))"
    )
    definition = batch.register_job_definition(
        jobDefinitionName="grid",
        type="multinode",
        parameters={"lr": "0"},
        nodeProperties=nodes.of_nodes(script),
    )["jobDefinitionArn"]
    file = campaign_file(
        place,
        "grid",
        GRID,
        results={"best": "accuracy"},
        batch_job={
            "jobQueue": nodes.make_queue(batch),
            "jobDefinition": definition,
            "parameters": {"lr": "{lr}"},
            "tags": ACCURACY,
        },
    )
    done = cluster(catalogue, "campaign", "run", file)
    assert "best: row 2, lr 2, accuracy 0.9, lr=2" in done.stdout, done.stdout
    rows = described(catalogue, "grid")["Rows"]
    assert [{metric["Name"]: metric["Value"] for metric in row["Metrics"]} for row in rows] == [
        {"accuracy": 0.89},
        {"accuracy": 0.9},
        {"accuracy": 0.89},
    ]
    assert all(row["Cost"] > 0 and row["InstanceCount"] == 2 for row in rows), rows


def test_a_grid_over_an_array_names_its_best_child(catalogue: Server, place: pathlib.Path) -> None:
    batch = catalogue.boto("batch")
    script = (
        "echo accuracy=0.$((50 + Ref::lr * 10 - (AWS_BATCH_JOB_ARRAY_INDEX - 1) *"
        " (AWS_BATCH_JOB_ARRAY_INDEX - 1)))"
    )
    definition = batch.register_job_definition(
        jobDefinitionName="array-grid",
        type="container",
        parameters={"lr": "0"},
        containerProperties=nodes.container(script),
    )["jobDefinitionArn"]
    file = campaign_file(
        place,
        "array-grid",
        GRID,
        results={"best": "accuracy"},
        batch_job={
            "jobQueue": nodes.make_queue(batch),
            "jobDefinition": definition,
            "arrayProperties": {"size": 4},
            "parameters": {"lr": "{lr}"},
            "tags": ACCURACY,
        },
    )
    done = cluster(catalogue, "campaign", "run", file)
    assert "best: row 3, lr 3, accuracy 0.8" in done.stdout, done.stdout
    rows = described(catalogue, "array-grid")["Rows"]
    assert [{metric["Name"]: metric["Value"] for metric in row["Metrics"]} for row in rows] == [
        {"accuracy": 0.6, "best child": 1},
        {"accuracy": 0.7, "best child": 1},
        {"accuracy": 0.8, "best child": 1},
    ], rows
    page = cluster(catalogue, "describe", rows[0]["Job"]).stdout
    assert "4 of 4 succeeded" in page and "array-grid:1" in page, page
    highest = next(line for line in page.splitlines() if line.startswith("accuracy"))
    assert highest.split() == ["accuracy", "0.6", "child", "1", "0.56", "child", "3"], page
    child = cluster(catalogue, "describe", rows[0]["Job"] + ":3").stdout
    assert (
        "0.56" in child
        and "trainyard/host" in child
        and "/aws/batch/job array-grid/default/" in child
    ), child


def test_a_metric_that_cannot_be_read_is_refused(catalogue: Server) -> None:
    batch = catalogue.boto("batch")
    queue = nodes.make_queue(batch)
    with pytest.raises(
        batch.exceptions.ClientException, match="Tag trainyard:metric:loss: .* needs a group"
    ):
        nodes.submit(
            batch, queue, nodes.container(), tags={"trainyard:metric:loss": "loss=[0-9.]+"}
        )
