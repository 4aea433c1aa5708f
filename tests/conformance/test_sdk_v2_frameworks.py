"""Tests PyTorch and TensorFlow estimators of the unmodified SageMaker Python SDK 2, with
distributions on two hosts."""

from typing import Any

import pytest

from tests import sdk
from tests.trainyard_server import Server


@pytest.fixture(scope="module")
def ran(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found, _, _ = sdk.run(server, 2, tmp_path_factory.mktemp("sdk"), "version_2_frameworks.py")
    for name, fit in found.items():
        assert "failure" not in fit, name + ": " + fit["failure"] + "\n".join(fit["lines"])
    return found


def ranks(fit: dict[str, Any]) -> list[tuple[str, str, str]]:
    return sorted((one["rank"], one["world"], one["host"]) for one in fit["ranks"])


def test_pytorch_with_torch_distributed(ran: dict[str, Any]) -> None:
    """Only the name of AWS's image is used, which the job's log says."""
    fit = ran["torch"]
    assert (
        "/pytorch-training:2.0.0-gpu-py310" in fit["image"] and fit["entry_point"] == "framework.py"
    )
    assert ranks(fit) == [("0", "2", "algo-1"), ("1", "2", "algo-2")]
    assert all(
        (one["epochs"], one["name"], one["rows"], one["master"]) == (3, "abc", 3, "algo-1")
        for one in fit["ranks"]
    )
    assert fit["files"] == ["rank-0", "rank-1"]
    assert any("runs on this machine's own system" in message for message in fit["messages"]), fit[
        "messages"
    ]


def test_tensorflow_with_parameter_servers(ran: dict[str, Any]) -> None:
    fit = ran["tensorflow"]
    assert "/tensorflow-training:2.13-cpu-py310" in fit["image"]
    assert {one["host"] for one in fit["ranks"]} == {"algo-1", "algo-2"}
    assert all("ps" in one["roles"] and one["epochs"] == 3 for one in fit["ranks"]), fit["ranks"]


def test_mpi(ran: dict[str, Any]) -> None:
    assert ranks(ran["mpi"]) == [
        ("0", "4", "algo-1"),
        ("1", "4", "algo-1"),
        ("2", "4", "algo-2"),
        ("3", "4", "algo-2"),
    ]
