"""Has helpers for FSx file systems: requests, and waits for their states."""

from __future__ import annotations

from typing import Any

from botocore.client import BaseClient

from tests.trainyard_server import wait_for

SUBNET = "subnet-0123456789abcdef0"


def request(import_path: str | None = None, **more: Any) -> dict[str, Any]:
    """Returns a CreateFileSystem request for the smallest file system; `more`: further members of
    LustreConfiguration."""
    lustre = dict(more)
    if import_path:
        lustre["ImportPath"] = import_path
    return {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": [SUBNET],
        **({"LustreConfiguration": lustre} if lustre else {}),
    }


def describe(fsx: BaseClient, identity: str) -> dict[str, Any]:
    found: dict[str, Any] = fsx.describe_file_systems(FileSystemIds=[identity])["FileSystems"][0]
    return found


def settled(fsx: BaseClient, identity: str) -> dict[str, Any]:
    """Returns the file system when it is no longer being created."""
    return wait_for(
        lambda: (found := describe(fsx, identity))["Lifecycle"] != "CREATING" and found,
        f"{identity} to be created",
        120,
    )


def create(fsx: BaseClient, import_path: str | None = None, **more: Any) -> str:
    """Creates a file system that must become available; returns its id."""
    made = fsx.create_file_system(**request(import_path, **more))["FileSystem"]
    found = settled(fsx, made["FileSystemId"])
    assert found["Lifecycle"] == "AVAILABLE", found.get("FailureDetails")
    return str(made["FileSystemId"])


def wait_until_gone(fsx: BaseClient, identity: str) -> None:
    wait_for(
        lambda: (
            identity
            not in [one["FileSystemId"] for one in fsx.describe_file_systems()["FileSystems"]]
        ),
        f"{identity} to be deleted",
        120,
    )


def run_task(
    fsx: BaseClient, identity: str, kind: str = "EXPORT_TO_REPOSITORY", **more: Any
) -> dict[str, Any]:
    """Runs a data repository task to its end."""
    task = fsx.create_data_repository_task(
        FileSystemId=identity, Type=kind, **({"Report": {"Enabled": False}} | more)
    )["DataRepositoryTask"]
    return wait_for(
        lambda: (
            (
                found := fsx.describe_data_repository_tasks(TaskIds=[task["TaskId"]])[
                    "DataRepositoryTasks"
                ][0]
            ).get("EndTime")
            and found
        ),
        "the task to end",
        120,
    )


def channel(name: str, identity: str, path: str = "/fsx", mode: str = "ro") -> dict[str, Any]:
    return {
        "ChannelName": name,
        "DataSource": {
            "FileSystemDataSource": {
                "FileSystemId": identity,
                "FileSystemType": "FSxLustre",
                "DirectoryPath": path,
                "FileSystemAccessMode": mode,
            }
        },
    }
