"""Tests delegation: campaigns with the permissions of the user that started them, and a server that
queries another one for its users."""

import base64
import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import boto3
import botocore.exceptions
import pytest
from botocore.client import BaseClient
from botocore.config import Config

from tests import campaigns, jobs, trainyard_server
from tests.calls import refused
from tests.trainyard_server import Server, wait_for

ACCOUNT = "123456789012"
OWNER = ("AKIAOWNEROFHOME00001", "owner-secret-of-home-000000000000000001")
OWNER_THERE = ("AKIAOWNEROFTHERE0001", "owner-secret-of-there-00000000000000001")
PEER = ("AKIAPEERREGIONUS0001", "peer-secret-0000000000000000000000000001")
ANN = ("AKIAANN0000000000001", "ann-secret-00000000000000000000000000001")
BOB = ("AKIABOB0000000000001", "bob-secret-00000000000000000000000000001")
ANN_THERE = ("AKIAANNTHERE00000001", "ann-secret-there-0000000000000000000001")
ANN_ARN = f"arn:aws:iam::{ACCOUNT}:user/ann"
DESCRIBE = '"trainyard:DescribeJob",'
SECONDS_MAX = 120


def statement(action: Any, resource: Any, effect: str = "Allow") -> dict[str, Any]:
    return {"Effect": effect, "Action": action, "Resource": resource}


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def of_user(name: str, *more: dict[str, Any], without: Sequence[str] = ()) -> str:
    """Returns the policy of a user of the team: campaigns and jobs with the user's name, the user's
    part of the bucket, one role."""
    actions = [
        one
        for one in (
            "trainyard:DescribeJob",
            "trainyard:QueryCatalogue",
            "trainyard:DescribeRegion",
            "sagemaker:CreateTrainingJob",
        )
        if one not in without
    ]
    return policy(
        statement(
            ["trainyard:CreateCampaign", "trainyard:DescribeCampaign", "trainyard:StopCampaign"],
            f"arn:aws:trainyard:*:*:campaign/{name}-*",
        ),
        statement([one for one in actions if one.startswith("trainyard")], ["*"]),
        statement(
            [
                *(one for one in actions if one.startswith("sagemaker")),
                "sagemaker:AddTags",
                "sagemaker:StopTrainingJob",
                "sagemaker:DescribeTrainingJob",
            ],
            f"arn:aws:sagemaker:*:*:training-job/{name}-*",
        ),
        statement("iam:PassRole", ["arn:aws:iam::*:role/Train", "arn:aws:iam::*:role/loose"]),
        statement("s3:*", [f"arn:aws:s3:::team*/{name}/*"]),
        statement("s3:ListBucket", "arn:aws:s3:::team*"),
        *more,
    )


def entity(table: str, name: str, document: str) -> str:
    return f"[[{table}]]\nname = '{name}'\npolicy = '''{document}'''\n"


def key(pair: tuple[str, str], user: str) -> str:
    return f"[[access_key]]\nid = '{pair[0]}'\nsecret = '{pair[1]}'\nuser = '{user}'\n"


ROLES = entity("role", "Train", policy(statement("*", "*"))) + entity(
    "role", "Admin", policy(statement("*", "*"))
)


def there_config(ann: str) -> str:
    return (
        f"account_id = '{ACCOUNT}'\nregion = 'eu-west-1'\n[network]\npool ="
        " '10.221.0.0/16'\n[jobs]\nstop_grace_seconds = 1\n"
        + key(OWNER_THERE, "owner")
        + key(PEER, "region-us")
        + key(ANN_THERE, "ann")
        + "[[user]]\nname = 'region-us'\n"
        + entity("user", "ann", ann)
        + ROLES
        + f"[[peer]]\naccess_key_id = '{PEER[0]}'\n"
    )


def home_config(there: Server, ann: str) -> str:
    return (
        f"account_id = '{ACCOUNT}'\n[network]\npool = '10.222.0.0/16'\n[jobs]\nstop_grace_seconds"
        " = 1\n"
        + key(OWNER, "owner")
        + key(ANN, "ann")
        + key(BOB, "bob")
        + entity("user", "ann", ann)
        + entity("user", "bob", of_user("bob"))
        + ROLES
        + f"[regions.eu-west-1]\nendpoint = '{there.env['AWS_ENDPOINT_URL']}'\naccess_key_id ="
        f" '{PEER[0]}'\nsecret_access_key = '{PEER[1]}'\n"
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("principals")


@pytest.fixture(scope="module")
def there(place: pathlib.Path) -> Iterator[Server]:
    """Starts the region eu-west-1: a separate server with the user ann and without bob."""
    running = trainyard_server.Server(place / "there", there_config(of_user("ann"))).start()
    running.boto("s3").create_bucket(Bucket="team-there")
    yield running
    running.clean()


@pytest.fixture(scope="module")
def home(place: pathlib.Path, there: Server) -> Iterator[Server]:
    running = trainyard_server.Server(place / "home", home_config(there, of_user("ann"))).start()
    s3 = running.boto("s3")
    s3.create_bucket(Bucket="team")
    for name in ("ann", "bob"):
        s3.put_object(Bucket="team", Key=f"{name}/data/part", Body=f"hello {name}\n".encode())
    yield running
    running.clean()


def client(
    server: Server, keys: tuple[str, str], service: str, region: str = "us-east-1"
) -> BaseClient:
    session = boto3.session.Session(
        aws_access_key_id=keys[0], aws_secret_access_key=keys[1], region_name=region
    )
    # the model of Trainyard's own operations
    session._session.get_component("data_loader").search_paths.insert(
        0, server.env["AWS_DATA_PATH"]
    )
    return session.client(
        service,
        endpoint_url=server.env["AWS_ENDPOINT_URL"],
        config=Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}),
    )


def campaign(
    name: str,
    query: str = "SELECT 'a' AS name",
    script: str = "cat /opt/ml/input/data/train/part",
    data: str = "s3://team/ann/data/",
    role: str = "Train",
    output: str = "team",
    **more: Any,
) -> str:
    request = jobs.request(
        name,
        script,
        channels={"train": (data, "FullyReplicated")},
        RoleArn=f"arn:aws:iam::{ACCOUNT}:role/{role}",
        OutputDataConfig={"S3OutputPath": f"s3://{output}/ann/models"},
    )
    del request["TrainingJobName"]
    return json.dumps({"name": name, "query": query, "training_job": request} | more)


def start(server: Server, keys: tuple[str, str], definition: str) -> dict[str, Any]:
    return client(server, keys, "trainyard").create_campaign(Definition=definition)


def described(server: Server, name: str, keys: tuple[str, str] = OWNER) -> dict[str, Any]:
    return client(server, keys, "trainyard").describe_campaign(CampaignName=name)


def finished(server: Server, name: str) -> dict[str, Any]:
    return campaigns.finished(described, server, name)


def take_over(server: Server, config: str) -> None:
    """Reloads another config, and waits until it is in effect."""
    before = server.log_text().count("reloaded the machines")
    server.reload(config)
    wait_for(
        lambda: server.log_text().count("reloaded the machines") > before,
        "the config to be reloaded",
    )


def denial(action: str, resource: str, arn: str = ANN_ARN) -> str:
    return f"User: {arn} is not authorized to perform: {action} on resource: {resource} because "


def test_a_campaign_does_what_its_starter_may(home: Server) -> None:
    start(home, ANN, campaign("ann-own"))
    seen = finished(home, "ann-own")
    assert (seen["Status"], seen["StartedBy"]) == ("Completed", ANN_ARN), seen
    assert "hello ann" in jobs.log_lines(home.boto("logs"), "ann-own-1")
    events = home.boto("cloudtrail").lookup_events(
        LookupAttributes=[{"AttributeKey": "EventName", "AttributeValue": "CreateTrainingJob"}]
    )["Events"]
    identity = json.loads(events[0]["CloudTrailEvent"])["userIdentity"]
    assert (identity["arn"], identity["invokedBy"]) == (
        ANN_ARN,
        f"arn:aws:trainyard:us-east-1:{ACCOUNT}:campaign/ann-own",
    )


@pytest.mark.parametrize(
    "name, definition, action, resource",
    [
        ("ann-role", {"role": "Admin"}, "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/Admin"),
        (
            "ann-data",
            {"role": "loose", "data": "s3://team/bob/data/"},
            "s3:GetObject",
            "arn:aws:s3:::team/bob/data/*",
        ),
        (
            "ann-copy",
            {
                "query": "SELECT 'a' AS name, 'us-east-1' AS region, 's3://team/bob/data/' AS data",
                "data": "{job.data}",
                "placement": {
                    "rule": "cheapest",
                    "regions": ["eu-west-1"],
                    "copy_to": "s3://team-there/ann/stolen/",
                },
            },
            "s3:GetObject",
            "arn:aws:s3:::team/bob/data/part",
        ),
        (
            "ann-overwrites",
            {
                "query": "SELECT 'a' AS name, 'us-east-1' AS region, 's3://team/ann/data/' AS data",
                "data": "{job.data}",
                "placement": {
                    "rule": "cheapest",
                    "regions": ["eu-west-1"],
                    "copy_to": "s3://team-there/bob/",
                },
            },
            "s3:PutObject",
            "arn:aws:s3:::team-there/bob/part",
        ),
        (
            "ann-watches",
            {
                "standing": True,
                "query": "SELECT name FROM datasets",
                "watch": [{"uri": "s3://bobs/", "row": {"name": "{stem}"}}],
            },
            "s3:ListBucket",
            "arn:aws:s3:::bobs",
        ),
    ],
)
def test_a_campaign_reaches_nothing_else(
    home: Server, there: Server, name: str, definition: dict[str, Any], action: str, resource: str
) -> None:
    start(home, ANN, campaign(name, **definition))
    seen = finished(home, name)
    assert seen["Status"] == "Stopped" and seen["StopReason"].startswith("AccessDenied: "), seen
    assert denial(action, resource) in seen["StopReason"], seen
    with pytest.raises(botocore.exceptions.ClientError, match="not found"):
        home.boto("sagemaker").describe_training_job(TrainingJobName=f"{name}-1")


def test_campaigns_without_rights_are_rejected(home: Server) -> None:
    code, message = refused(
        client(home, ANN, "trainyard").create_campaign, Definition=campaign("bob-1")
    )
    assert (
        code == "AccessDeniedException"
        and denial(
            "trainyard:CreateCampaign", f"arn:aws:trainyard:us-east-1:{ACCOUNT}:campaign/bob-1"
        )
        in message
    )
    code, message = refused(
        client(home, ANN, "trainyard").change_catalogue, Statement="DELETE FROM datasets"
    )
    assert code == "AccessDeniedException" and denial("trainyard:ChangeCatalogue", "*") in message
    code, message = refused(
        client(home, BOB, "trainyard").describe_campaign, CampaignName="ann-own"
    )
    assert code == "AccessDeniedException", message
    rows = client(home, BOB, "trainyard").query_catalogue(
        Statement="SELECT count(*) FROM campaign_rows"
    )["Rows"]
    assert rows == [{"Values": ["0"]}], "bob sees rows of his own campaigns"
    code, message = refused(
        client(home, ANN, "trainyard").create_campaign,
        Definition=campaign("ann-nowhere", query="SELECT 'a' AS name, 'mars-1' AS region"),
    )
    assert "unknown region 'mars-1'" in message


def test_after_a_kill_it_continues_with_the_same_rights(home: Server) -> None:
    query = "SELECT 'a' AS name, 'Train' AS role UNION ALL SELECT 'b', 'Admin'"
    start(home, ANN, campaign("ann-killed", query, "sleep 3", role="{role}", at_once=1))
    wait_for(
        lambda: described(home, "ann-killed")["Rows"][0]["State"] == "running",
        "its first job to run",
    )
    home.kill()
    home.start()
    seen = finished(home, "ann-killed")
    assert [row["State"] for row in seen["Rows"]] == ["completed", "failed"], seen["Rows"]
    assert denial("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/Admin") in seen["StopReason"]
    assert seen["StartedBy"] == ANN_ARN


def test_a_revoked_permission_stops_a_campaign(home: Server, there: Server) -> None:
    sagemaker = home.boto("sagemaker")
    query = "SELECT 'a' AS name UNION ALL SELECT 'b'"
    try:
        for name, right in (
            ("ann-taken", "sagemaker:CreateTrainingJob"),
            ("ann-blind", "trainyard:DescribeJob"),
        ):
            start(home, ANN, campaign(name, query, "sleep 300", at_once=1))
            wait_for(
                lambda name=name: described(home, name)["Rows"][0]["State"] == "running",
                "its first job to run",
            )
            take_over(home, home_config(there, of_user("ann", without=[right])))
            if right.startswith("sagemaker"):
                sagemaker.stop_training_job(TrainingJobName=f"{name}-1")
            seen = finished(home, name)
            assert (
                denial(
                    right,
                    (
                        f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-job/{name}-2"
                        if right.startswith("sagemaker")
                        else f"arn:aws:trainyard:us-east-1:{ACCOUNT}:job/{name}-1"
                    ),
                )
                in seen["StopReason"]
            ), seen
            take_over(home, home_config(there, of_user("ann")))
        row = described(home, "ann-blind")["Rows"][0]
        assert row["State"] == "stopped" and row["Reason"].endswith("its job is left as it is"), row
        assert (
            sagemaker.describe_training_job(TrainingJobName="ann-blind-1")["TrainingJobStatus"]
            == "InProgress"
        )
        sagemaker.stop_training_job(TrainingJobName="ann-blind-1")
    finally:
        take_over(home, home_config(there, of_user("ann")))


def test_another_server_authorises_each_caller(home: Server, there: Server) -> None:
    s3 = client(home, ANN, "s3", "eu-west-1")
    s3.put_object(Bucket="team-there", Key="ann/mine", Body=b"mine")
    assert (
        client(there, ANN_THERE, "s3", "eu-west-1")
        .get_object(Bucket="team-there", Key="ann/mine")["Body"]
        .read()
        == b"mine"
    )
    code, message = refused(s3.get_object, Bucket="team-there", Key="bob/secret")
    assert (
        code == "AccessDenied"
        and denial("s3:GetObject", "arn:aws:s3:::team-there/bob/secret") in message
    )
    # A user with all permissions here has none there, and an unknown user is rejected there.
    code, message = refused(
        client(home, BOB, "s3", "eu-west-1").list_objects_v2, Bucket="team-there", Prefix="bob/"
    )
    assert code == "AccessDenied" and "region-us" in message and "of the user bob" in message
    sagemaker = client(home, ANN, "sagemaker", "eu-west-1")
    request = json.loads(
        campaign("ann-there", data="s3://team-there/ann/", output="team-there", script="true")
    )["training_job"]
    sagemaker.create_training_job(TrainingJobName="ann-there", **request)
    job = jobs.wait_until(there.boto("sagemaker"), "ann-there")
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    code, message = refused(
        sagemaker.create_training_job,
        TrainingJobName="ann-admin",
        **request | {"RoleArn": f"arn:aws:iam::{ACCOUNT}:role/Admin"},
    )
    assert (
        code == "AccessDeniedException"
        and denial("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/Admin") in message
    )
    events = there.boto("cloudtrail").lookup_events(
        LookupAttributes=[{"AttributeKey": "EventName", "AttributeValue": "CreateTrainingJob"}]
    )["Events"]
    identity = json.loads(events[-1]["CloudTrailEvent"])["userIdentity"]
    assert (identity["arn"], identity["accessKeyId"], identity["invokedBy"]) == (
        ANN_ARN,
        PEER[0],
        f"arn:aws:iam::{ACCOUNT}:user/region-us",
    )
    # The owner here has the permissions of the key, which has none.
    code, message = refused(
        home.boto("s3", region_name="eu-west-1").list_objects_v2, Bucket="team-there"
    )
    assert code == "AccessDenied" and "user/region-us" in message


def test_no_other_principal_signs_for_others(home: Server, there: Server) -> None:
    """The signed header is rejected from keys that do not belong to a peer."""
    described_owner = base64.b64encode(
        json.dumps({"kind": "user", "name": "ann", "id": "x"}).encode()
    ).decode()
    for server, keys, region in (
        (there, ANN_THERE, "eu-west-1"),
        (there, OWNER_THERE, "eu-west-1"),
        (home, ANN, "us-east-1"),
        (home, ANN, "eu-west-1"),
    ):
        for service, call, arguments in (
            ("s3", "list_buckets", {}),
            ("sagemaker", "list_training_jobs", {}),
        ):
            one = client(server, keys, service, region)
            one.meta.events.register(
                f"before-sign.{service}",
                lambda request, **_: request.headers.add_header(
                    "x-amz-trainyard-principal", described_owner
                ),
            )
            code, message = refused(getattr(one, call), **arguments)
            assert code.startswith("AccessDenied") and "on behalf of other principals" in message, (
                code,
                message,
            )


def test_a_campaign_runs_there_with_the_rights_that_its_starter_has_there(
    home: Server, there: Server
) -> None:
    query = "SELECT 'a' AS name, 'eu-west-1' AS region"
    start(
        home,
        ANN,
        campaign("ann-remote", query, "true", data="s3://team-there/ann/", output="team-there"),
    )
    seen = finished(home, "ann-remote")
    assert seen["Status"] == "Completed", seen
    assert (
        there.boto("sagemaker").describe_training_job(TrainingJobName="ann-remote-1")[
            "TrainingJobStatus"
        ]
        == "Completed"
    )
    take_over(there, there_config(of_user("ann", without=["sagemaker:CreateTrainingJob"])))
    try:
        start(
            home,
            ANN,
            campaign(
                "ann-remote-denied", query, "true", data="s3://team-there/ann/", output="team-there"
            ),
        )
        seen = finished(home, "ann-remote-denied")
        assert (
            seen["Status"] == "Stopped"
            and denial(
                "sagemaker:CreateTrainingJob",
                f"arn:aws:sagemaker:eu-west-1:{ACCOUNT}:training-job/ann-remote-denied-1",
            )
            in seen["StopReason"]
        ), seen
    finally:
        take_over(there, there_config(of_user("ann")))


def test_the_owners_key_is_replaced_while_a_campaign_runs(home: Server, there: Server) -> None:
    start(
        home,
        OWNER,
        campaign("owners", "SELECT 'a' AS name UNION ALL SELECT 'b'", "sleep 2", at_once=1),
    )
    wait_for(
        lambda: described(home, "owners")["Rows"][0]["State"] == "running", "its first job to run"
    )
    replaced = ("AKIAOWNEROFHOME00002", "owner-secret-of-home-000000000000000002")
    before = home_config(there, of_user("ann"))
    take_over(home, before.replace(OWNER[0], replaced[0]).replace(OWNER[1], replaced[1]))

    wait_for(
        lambda: described(home, "owners", replaced)["Status"] not in ("InProgress", "Stopping"),
        "its end",
        SECONDS_MAX,
    )
    assert described(home, "owners", replaced)["Status"] == "Completed"
    take_over(home, before)
