"""Tests the unmodified SageMaker Python SDK, major version 2: Estimator.fit() and its common
uses."""

import json
from typing import Any

import pytest

from tests import sdk
from tests.trainyard_server import Server


@pytest.fixture(scope="module")
def ran(
    server: Server, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], str, list[str]]:
    return sdk.run(server, 2, tmp_path_factory.mktemp("sdk"))


def test_the_session_finds_account_bucket_and_role(
    ran: tuple[dict[str, Any], str, list[str]],
) -> None:
    found, _, _ = ran
    assert found["version"].startswith("2.")
    account = found["role"].split(":")[4]
    assert found["role"] == f"arn:aws:iam::{account}:role/TrainyardOwner"
    assert found["bucket"] == found["bucket_again"] == f"sagemaker-{found['region']}-{account}"
    assert found["data"] == f"s3://{found['bucket']}/digits/train/rows.csv"


def test_nothing_needs_the_internet(ran: tuple[dict[str, Any], str, list[str]]) -> None:
    assert ran[2] == []


def test_fit_waits_shows_all_hosts_logs_and_knows_its_model(
    ran: tuple[dict[str, Any], str, list[str]],
) -> None:
    found, printed, _ = ran
    fit = found["fit_and_attach"]
    for host in (1, 2):
        assert f"host algo-{host} of 2 read 3 rows for 3 epochs" in printed
    assert "Training seconds:" in printed and "Billable seconds:" in printed
    assert (
        fit["model_data"]
        == fit["attached"]
        == f"s3://{found['bucket']}/{fit['name']}/output/model.tar.gz"
    )
    assert json.loads(fit["files"]["model.json"])["hyperparameters"] == {
        "epochs": "3",
        "name": "abc",
    }
    assert fit["hyperparameters"] == {"epochs": "3", "name": "abc"}


def test_describe_echoes_what_the_sdk_sent(ran: tuple[dict[str, Any], str, list[str]]) -> None:
    description = ran[0]["fit_and_attach"]["description"]
    assert description["VpcConfig"] == {"SecurityGroupIds": ["sg-0123"], "Subnets": ["subnet-0123"]}
    assert description["Environment"] == {"COLOUR": "green"}
    assert (
        description["OutputDataConfig"]["KmsKeyId"] == ""
        and description["OutputDataConfig"]["CompressionType"] == "GZIP"
    )
    assert description["ProfilerConfig"]["S3OutputPath"].startswith("s3://sagemaker-")
    assert (
        description["DebugHookConfig"]["S3OutputPath"]
        == f"s3://{ran[0]['bucket']}/digits/train/tensors"
    )
    assert description["FinalMetricDataList"][0]["Value"] == 3
    assert description["ResourceConfig"]["InstanceCount"] == 2


def test_a_failed_job_raises_with_its_reason(ran: tuple[dict[str, Any], str, list[str]]) -> None:
    failing = ran[0]["failing_fit"]
    assert (
        failing["status"] == "Failed"
        and "AlgorithmError: out of ideas, exit code: 3" in failing["words"]
    )


def test_stop_gives_the_script_its_time(ran: tuple[dict[str, Any], str, list[str]]) -> None:
    stopped = ran[0]["stopped_fit"]
    assert stopped["status"] == "Stopped" and stopped["files"] == {"saved": "saved\n"}
    assert stopped["role"].endswith(":role/trainer")


def test_unsupported_requests_are_refused_with_an_explanation(
    ran: tuple[dict[str, Any], str, list[str]],
) -> None:
    output, volume = ran[0]["refused_fit"]
    assert "ValidationException" in output and "OutputDataConfig.KmsKeyId" in output
    assert "ValidationException" in volume and "VolumeKmsKeyId" in volume
