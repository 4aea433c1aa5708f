"""Tests the unmodified SageMaker Python SDK, major version 3: ModelTrainer.train()."""

import json
import re
from typing import Any

import pytest

from tests import sdk
from tests.trainyard_server import Server


@pytest.fixture(scope="module")
def ran(
    server: Server, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], str, list[str]]:
    return sdk.run(server, 3, tmp_path_factory.mktemp("sdk"))


def test_the_session_finds_bucket_and_role(ran: tuple[dict[str, Any], str, list[str]]) -> None:
    found, _, _ = ran
    assert found["version"].startswith("3.")
    assert found["role"].endswith(":role/TrainyardOwner") and found["bucket"].startswith(
        "sagemaker-us-east-1-"
    )


def test_nothing_needs_the_internet(ran: tuple[dict[str, Any], str, list[str]]) -> None:
    assert ran[2] == []


def test_train_waits_shows_all_hosts_logs_and_leaves_a_model(
    ran: tuple[dict[str, Any], str, list[str]],
) -> None:
    found, printed, _ = ran
    done = found["train"]
    assert done["status"] == "Completed"
    for host in (1, 2):
        assert f"host algo-{host} of 2 read 3 rows for 3 epochs" in printed
    model = json.loads(done["files"]["model.json"])
    assert model["rows"] == 3 and model["hyperparameters"] == {"epochs": "3"}
    assert model["source"] == "/opt/ml/input/data/code", "the SDK's own drivers ran"


def test_a_failed_job_raises_with_its_reason(ran: tuple[dict[str, Any], str, list[str]]) -> None:
    failing = ran[0]["failing_train"]
    assert failing["kind"] == "FailedStatusError" and "AlgorithmError" in failing["words"], failing


def test_the_reason_is_the_scripts_own_exception(
    ran: tuple[dict[str, Any], str, list[str]],
) -> None:
    assert "ValueError: out of ideas" in ran[0]["failing_train"]["words"]
    reason = ran[0]["failing_script"]["reason"]
    assert reason.startswith("AlgorithmError: ValueError: no such column\n"), reason
    assert "failing.py" in reason and "sm_drivers" not in reason


@pytest.mark.parametrize("part", ["wrong_argument", "wrong_argument_of_ranks"])
def test_the_reason_of_a_script_without_an_exception_is_its_last_line(
    ran: tuple[dict[str, Any], str, list[str]], part: str
) -> None:
    reason = ran[0][part]["reason"]
    assert reason.startswith(
        "AlgorithmError: arguments.py: error: argument --epochs: invalid int value: 'x'\n"
        "Executing command: "
    ), reason
    assert "set +x" not in reason and "ChildFailed" not in reason, reason


def test_the_reason_of_a_command_is_its_last_line(
    ran: tuple[dict[str, Any], str, list[str]],
) -> None:
    reason = ran[0]["failing_command"]["reason"]
    assert reason.startswith("AlgorithmError: ls: cannot access '/absent'"), reason


def test_torchrun_works_with_debians_torch(ran: tuple[dict[str, Any], str, list[str]]) -> None:
    done = ran[0]["torchrun"]
    assert done["status"] == "Completed", done
    # torchrun does not keep the lines of its ranks apart.
    sums = re.findall(r"rank \d has the sum 3", "\n".join(done["log"]))
    assert sorted(sums) == ["rank 0 has the sum 3", "rank 1 has the sum 3"], done["log"]


def test_an_mpi_driver_without_paramiko_reports_it(
    ran: tuple[dict[str, Any], str, list[str]],
) -> None:
    reason = ran[0]["mpi"]["reason"]
    assert reason.startswith(
        "AlgorithmError: ModuleNotFoundError: No module named 'paramiko' (the SDK's MPI driver"
        " needs it: add paramiko to requirements.txt; on several hosts the image must also have"
        " sshd,"
    ), reason


def test_a_stop_reaches_the_script_below_the_drivers(
    ran: tuple[dict[str, Any], str, list[str]],
) -> None:
    done = ran[0]["stopped"]
    assert done["status"] == "Stopped", done
    assert done["files"] == {"saved": "saved"}
    assert "saved all" in done["log"], done["log"][-10:]
