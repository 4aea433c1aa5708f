"""Tests FSx for Lustre through unmodified clients."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient

from tests import file_systems
from tests.calls import fresh, refusal
from tests.trainyard_server import Answer, Server, wait_for


@pytest.fixture(scope="module")
def fsx(server: Server) -> BaseClient:
    return server.boto("fsx")


@pytest.fixture(scope="module")
def bucket(server: Server) -> str:
    name = fresh("imagenet")
    s3 = server.boto("s3")
    s3.create_bucket(Bucket=name)
    for number in range(20):
        s3.put_object(Bucket=name, Key=f"resized/train/{number}", Body=b"x" * (number + 1))
    return name


def test_the_tutorial(server: Server, aws: Callable[..., Answer], bucket: str) -> None:
    """Creates a file system from a bucket, describes it until it is available, and deletes it, with
    the AWS CLI."""
    made = aws(
        "fsx",
        "create-file-system",
        "--file-system-type",
        "LUSTRE",
        "--storage-capacity",
        "3600",
        "--subnet-ids",
        file_systems.SUBNET,
        "--tags",
        "Key=Name,Value=ImageNet2012 dataset",
        "--lustre-configuration",
        f"ImportPath=s3://{bucket}/resized,ImportedFileChunkSize=1024",
    )["FileSystem"]
    identity = made["FileSystemId"]
    assert re.fullmatch(r"fs-[0-9a-f]{17}", identity)
    assert made["Lifecycle"] in ("CREATING", "AVAILABLE") and made["StorageCapacity"] == 3600

    def available() -> dict[str, Any] | None:
        found: list[dict[str, Any]] = aws(
            "fsx", "describe-file-systems", "--file-system-ids", identity
        )["FileSystems"]
        return found[0] if found[0]["Lifecycle"] == "AVAILABLE" else None

    found = wait_for(available, "the file system", 120)
    lustre = found["LustreConfiguration"]
    assert lustre["MountName"] == "fsx" and lustre["DeploymentType"] == "SCRATCH_1"
    assert found["DNSName"] == f"{identity}.fsx.us-east-1.amazonaws.com"
    repository = lustre["DataRepositoryConfiguration"]
    assert repository["ImportPath"] == f"s3://{bucket}/resized"
    assert re.fullmatch(rf"s3://{bucket}/FSxLustre\d{{8}}T\d{{6}}Z", repository["ExportPath"])
    assert repository["AutoImportPolicy"] == "NONE" and repository["Lifecycle"] == "AVAILABLE"
    tags = aws("fsx", "list-tags-for-resource", "--resource-arn", found["ResourceARN"])["Tags"]
    assert tags == [{"Key": "Name", "Value": "ImageNet2012 dataset"}]
    deleted = aws("fsx", "delete-file-system", "--file-system-id", identity)
    assert deleted["Lifecycle"] == "DELETING"
    file_systems.wait_until_gone(server.boto("fsx"), identity)


def test_repeated_requests_make_one(fsx: BaseClient) -> None:
    token = fresh("token")
    request = file_systems.request() | {"ClientRequestToken": token}
    first = fsx.create_file_system(**request)["FileSystem"]["FileSystemId"]
    assert fsx.create_file_system(**request)["FileSystem"]["FileSystemId"] == first
    with pytest.raises(fsx.exceptions.IncompatibleParameterError, match="client request token"):
        fsx.create_file_system(**(request | {"StorageCapacity": 2400}))


def test_pages(fsx: BaseClient) -> None:
    made = {file_systems.create(fsx) for _ in range(3)}
    pages = list(
        fsx.get_paginator("describe_file_systems").paginate(PaginationConfig={"PageSize": 2})
    )
    listed = [one["FileSystemId"] for page in pages for one in page["FileSystems"]]
    assert made <= set(listed) and len(listed) == len(set(listed))
    assert all(len(page["FileSystems"]) <= 2 for page in pages)


def test_errors_have_aws_texts(fsx: BaseClient, bucket: str) -> None:
    lustre = file_systems.request
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("BadRequest", "Must be 1200 or 2400 or a", lustre() | {"StorageCapacity": 5}),
        ("BadRequest", "use LUSTRE", lustre() | {"FileSystemType": "OPENZFS"}),
        ("BadRequest", "exactly one subnet", lustre() | {"SubnetIds": []}),
        ("BadRequest", "KmsKeyId is not offered", lustre() | {"KmsKeyId": "k"}),
        ("InvalidImportPath", "import isn't valid", lustre("s3://no-such-bucket-here/x")),
        ("InvalidImportPath", "must begin with s3://", lustre("https://x/y")),
        (
            "InvalidExportPath",
            "in the bucket of ImportPath",
            lustre(f"s3://{bucket}", ExportPath="s3://other/x"),
        ),
        ("IncompatibleParameterError", "requires an", lustre(ExportPath=f"s3://{bucket}")),
        ("IncompatibleParameterError", "", lustre(PerUnitStorageThroughput=50)),
        ("InvalidPerUnitStorageThroughput", "50, 100", lustre(DeploymentType="PERSISTENT_1")),
        ("BadRequest", "backup is not offered", lustre(AutomaticBackupRetentionDays=7)),
    ]
    for code, words, request in rows:
        assert words in refusal(fsx.create_file_system, code, **request)
    assert "regular expression pattern" in refusal(
        fsx.describe_file_systems, "BadRequest", FileSystemIds=["fs-UPPER000000000000"]
    )
    with pytest.raises(fsx.exceptions.FileSystemNotFound, match="'fs-0123456789abcdef0' does not"):
        fsx.describe_file_systems(FileSystemIds=["fs-0123456789abcdef0"])
    with pytest.raises(fsx.exceptions.FileSystemNotFound):
        fsx.delete_file_system(FileSystemId="fs-0123456789abcdef0")
    with pytest.raises(fsx.exceptions.DataRepositoryTaskNotFound):
        fsx.cancel_data_repository_task(TaskId="task-0123456789abcdef0")
    with pytest.raises(fsx.exceptions.DataRepositoryAssociationNotFound):
        fsx.delete_data_repository_association(AssociationId="dra-0123456789abcdef0")
    with pytest.raises(fsx.exceptions.ResourceNotFound):
        fsx.list_tags_for_resource(
            ResourceARN="arn:aws:fsx:us-east-1:123456789012:file-system/fs-0123456789abcdef0"
        )


def test_updates(fsx: BaseClient) -> None:
    identity = file_systems.create(fsx, DeploymentType="SCRATCH_2")
    after = fsx.update_file_system(
        FileSystemId=identity,
        StorageCapacity=2400,
        LustreConfiguration={"WeeklyMaintenanceStartTime": "3:01:30"},
    )["FileSystem"]
    assert after["StorageCapacity"] == 2400
    assert (
        file_systems.describe(fsx, identity)["LustreConfiguration"]["WeeklyMaintenanceStartTime"]
        == "3:01:30"
    )
    assert "must be greater" in refusal(
        fsx.update_file_system, "BadRequest", FileSystemId=identity, StorageCapacity=1200
    )


def test_hostile_keys_are_left_out_and_named(server: Server, fsx: BaseClient) -> None:
    s3 = server.boto("s3")
    name = fresh("hostile")
    s3.create_bucket(Bucket=name)
    for key in ("a/../../../../escape", "good"):
        s3.put_object(Bucket=name, Key=key, Body=b"x")
    found = file_systems.describe(fsx, file_systems.create(fsx, f"s3://{name}"))
    assert "FailureDetails" not in found
    repository = found["LustreConfiguration"]["DataRepositoryConfiguration"]
    assert repository["Lifecycle"] == "AVAILABLE"
    message = repository["FailureDetails"]["Message"]
    assert "1 of 2 objects were left out" in message
    assert "would lead out of its directory" in message


def test_tasks(server: Server, fsx: BaseClient, bucket: str) -> None:
    identity = file_systems.create(
        fsx, f"s3://{bucket}/resized", ExportPath=f"s3://{bucket}/results"
    )
    server.boto("s3").put_object(Bucket=bucket, Key="resized/later", Body=b"later")
    report = {
        "Enabled": True,
        "Path": f"s3://{bucket}/results/reports",
        "Format": "REPORT_CSV_20191124",
        "Scope": "FAILED_FILES_ONLY",
    }
    done = file_systems.run_task(
        fsx, identity, "IMPORT_METADATA_FROM_REPOSITORY", Paths=["later"], Report=report
    )
    assert done["Lifecycle"] == "SUCCEEDED" and done["Status"]["SucceededCount"] == 1
    body = server.boto("s3").get_object(
        Bucket=bucket, Key=f"results/reports/{done['TaskId']}/report.csv"
    )["Body"]
    assert body.read() == b""
    done = file_systems.run_task(fsx, identity)
    assert done["Lifecycle"] == "SUCCEEDED" and done["Status"]["TotalCount"] == 21
    found = fsx.describe_data_repository_tasks(
        Filters=[{"Name": "file-system-id", "Values": [identity]}]
    )["DataRepositoryTasks"]
    assert len(found) == 2
    assert "not offered" in refusal(
        fsx.create_data_repository_task,
        "UnsupportedOperation",
        FileSystemId=identity,
        Type="RELEASE_DATA_FROM_FILESYSTEM",
        Report={"Enabled": False},
    )
    assert "linked data repository" in refusal(
        fsx.create_data_repository_task,
        "BadRequest",
        FileSystemId=identity,
        Type="EXPORT_TO_REPOSITORY",
        Report=report | {"Path": f"s3://{bucket}/elsewhere"},
    )
    with pytest.raises(fsx.exceptions.DataRepositoryTaskEnded):
        fsx.cancel_data_repository_task(TaskId=done["TaskId"])


def test_data_repository_associations(
    fsx: BaseClient, aws: Callable[..., Answer], bucket: str
) -> None:
    identity = file_systems.create(fsx, DeploymentType="PERSISTENT_2", PerUnitStorageThroughput=125)
    made = aws(
        "fsx",
        "create-data-repository-association",
        "--file-system-id",
        identity,
        "--file-system-path",
        "/ns1",
        "--data-repository-path",
        f"s3://{bucket}/resized",
        "--batch-import-meta-data-on-create",
        "--s3",
        "AutoImportPolicy={Events=[NEW,CHANGED]}",
    )["Association"]

    def find() -> dict[str, Any]:
        found: dict[str, Any] = fsx.describe_data_repository_associations(
            Filters=[{"Name": "file-system-id", "Values": [identity]}]
        )["Associations"][0]
        return found

    wait_for(lambda: find()["Lifecycle"] == "AVAILABLE", "the association", 120)
    assert find()["FileSystemPath"] == "/ns1" and find()["AssociationId"] == made["AssociationId"]
    assert find()["S3"]["AutoImportPolicy"]["Events"] == ["NEW", "CHANGED"]
    fsx.update_data_repository_association(
        AssociationId=made["AssociationId"], S3={"AutoImportPolicy": {"Events": ["NEW"]}}
    )
    assert find()["S3"]["AutoImportPolicy"]["Events"] == ["NEW"]
    assert "AutoExportPolicy" in refusal(
        fsx.update_data_repository_association,
        "BadRequest",
        AssociationId=made["AssociationId"],
        S3={"AutoExportPolicy": {"Events": ["NEW"]}},
    )
    fsx.delete_data_repository_association(
        AssociationId=made["AssociationId"], DeleteDataInFileSystem=True
    )
    wait_for(
        lambda: (
            not fsx.describe_data_repository_associations(
                AssociationIds=[], Filters=[{"Name": "file-system-id", "Values": [identity]}]
            )["Associations"]
        ),
        "the association to be deleted",
        120,
    )


def test_a_user_needs_the_rights_of_what_the_server_does(server: Server, bucket: str) -> None:
    """The creator of a file system needs the permissions to read and write its S3 data, since the
    server does both for it. A policy may name tags."""
    iam = server.boto("iam")
    name = fresh("ann")
    iam.create_user(UserName=name)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    own = server.boto(
        "fsx",
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
    )

    def allow(*statements: dict[str, Any]) -> None:
        document = {"Version": "2012-10-17", "Statement": list(statements)}
        iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=json.dumps(document))

    everything = {"Effect": "Allow", "Action": "fsx:*", "Resource": "*"}
    allow(everything)
    request = file_systems.request(f"s3://{bucket}/resized", ExportPath=f"s3://{bucket}/out")
    assert "s3:ListBucket" in refusal(own.create_file_system, "AccessDeniedException", **request)
    reads = {
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:ListBucket"],
        "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"],
    }
    allow(everything, reads)
    assert "s3:PutObject" in refusal(own.create_file_system, "AccessDeniedException", **request)
    writes = {
        "Effect": "Allow",
        "Action": "s3:PutObject",
        "Resource": f"arn:aws:s3:::{bucket}/out/*",
    }
    allow(everything, reads, writes)
    tagged = request | {"Tags": [{"Key": "team", "Value": "vision"}]}
    identity = own.create_file_system(**tagged)["FileSystem"]["FileSystemId"]
    file_systems.settled(server.boto("fsx"), identity)
    condition = {"StringEquals": {"aws:ResourceTag/team": "audio"}}
    allow(everything | {"Condition": condition})
    assert "fsx:DeleteFileSystem" in refusal(
        own.delete_file_system, "AccessDeniedException", FileSystemId=identity
    )
    allow(everything | {"Condition": {"StringEquals": {"aws:ResourceTag/team": "vision"}}})
    own.delete_file_system(FileSystemId=identity)
