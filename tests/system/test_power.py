"""Tests a power failure: the data directory's file system is copied as it is on disk at one instant
under load, and mounted elsewhere. Everything that was acknowledged before that instant is there.
(kill -9 cannot show this: it loses no page cache.)"""

import os
import pathlib
import signal
import subprocess
import threading
import uuid
from typing import Any

import botocore.exceptions

from tests import jobs
from tests.trainyard_server import Server, wait_for

IMAGE_BYTES = 256 << 20
ACKNOWLEDGED_MIN = 60


def mounted(image: str, place: str) -> str:
    os.makedirs(place)
    subprocess.run(["mount", "-o", "loop", image, place], check=True)
    return place


def test_power_cut(tmp_path: pathlib.Path) -> None:
    image, copy = str(tmp_path / "disk"), str(tmp_path / "disk-after")
    with open(image, "wb") as file:
        file.truncate(IMAGE_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    disk = mounted(image, str(tmp_path / "before"))
    server, revived = Server(os.path.join(disk, "data")), None
    ending = threading.Event()
    acknowledged: dict[str, Any] = {"objects": {}, "jobs": []}
    threads = []
    try:
        server.start()
        server.boto("s3").create_bucket(Bucket="yard")

        def put_objects(number: int) -> None:
            s3 = server.boto("s3")
            while not ending.is_set():
                key, body = f"{number}/{uuid.uuid4().hex}", os.urandom(20_000)
                try:
                    s3.put_object(Bucket="yard", Key=key, Body=body)
                except (
                    botocore.exceptions.BotoCoreError,
                    botocore.exceptions.ClientError,
                    OSError,
                ):
                    return
                acknowledged["objects"][key] = body

        def create_jobs() -> None:
            sagemaker = server.boto("sagemaker")
            while not ending.is_set():
                name = f"power-{uuid.uuid4().hex[:8]}"
                try:
                    sagemaker.create_training_job(**jobs.request(name, "sleep 1000"))
                except (
                    botocore.exceptions.BotoCoreError,
                    botocore.exceptions.ClientError,
                    OSError,
                ):
                    return
                acknowledged["jobs"].append(name)

        threads = [threading.Thread(target=put_objects, args=(number,)) for number in range(2)] + [
            threading.Thread(target=create_jobs)
        ]
        for thread in threads:
            thread.start()
        wait_for(
            lambda: (
                len(acknowledged["objects"]) >= ACKNOWLEDGED_MIN
                and len(acknowledged["jobs"]) >= ACKNOWLEDGED_MIN
            ),
            "load",
        )
        # No process writes while the disk is copied, and nothing is synced before.
        os.kill(server.process.pid, signal.SIGSTOP)
        promised: dict[str, Any] = {
            "objects": dict(acknowledged["objects"]),
            "jobs": list(acknowledged["jobs"]),
        }
        subprocess.run(["cp", "--sparse=always", image, copy], check=True)
        os.kill(server.process.pid, signal.SIGCONT)
        ending.set()
        for thread in threads:
            thread.join()
        server.clean()

        subprocess.run(["umount", disk], check=True)
        disk = mounted(copy, str(tmp_path / "after"))
        revived = Server(os.path.join(disk, "data")).start()
        s3, sagemaker = revived.boto("s3"), revived.boto("sagemaker")
        for key, body in promised["objects"].items():
            assert s3.get_object(Bucket="yard", Key=key)["Body"].read() == body, key
        for name in promised["jobs"]:
            assert sagemaker.describe_training_job(TrainingJobName=name)["TrainingJobName"] == name
        listed = [
            one["Key"]
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket="yard")
            for one in page["Contents"]
        ]
        for key in listed:
            assert len(s3.get_object(Bucket="yard", Key=key)["Body"].read()) in (
                20_000,
            ) or key.startswith("models/"), "none is half there"
    finally:
        ending.set()
        for one in (server, revived):
            if one:
                one.clean()
        for place in ("before", "after"):
            subprocess.run(
                ["umount", "-l", str(tmp_path / place)], check=False, stderr=subprocess.DEVNULL
            )
