"""Tests that nothing that was acknowledged is lost, and nothing stays behind, when server and
agents are killed under load."""

import os
import pathlib
import random
import signal
import threading
import time
import uuid
from collections.abc import Callable

import botocore.exceptions

from tests import jobs, leftovers
from tests.trainyard_server import Server, wait_for

KILLS = 24
SEED = int(os.environ.get("TRAINYARD_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)


class Load(threading.Thread):
    """Submits short jobs until it is stopped, and records those that were acknowledged."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server, self.acknowledged, self.ending = server, [], threading.Event()

    def run(self) -> None:
        while not self.ending.is_set():
            name = f"load-{uuid.uuid4().hex[:10]}"
            hosts = 2 if len(self.acknowledged) % 3 == 0 else 1
            try:
                self.server.boto("sagemaker").create_training_job(
                    **jobs.request(
                        name,
                        "echo begins; sleep 0.7; echo $(hostname) > /opt/ml/model/$(hostname); echo"
                        " ends",
                        hosts=hosts,
                    )
                )
                self.acknowledged.append((name, hosts))
            except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError, OSError):
                pass  # not acknowledged: nothing is guaranteed
            self.ending.wait(0.4)


def test_kills_under_load(tmp_path: pathlib.Path) -> None:
    print(f"note: repeat with TRAINYARD_SEED={SEED}")
    chance = random.Random(SEED)
    server = Server(
        tmp_path / "data", "[[machine]]\nname = 'box'\ncpus = 16.0\nmemory_gib = 64.0\n"
    )
    before = leftovers.picture(server.data)
    server.start()
    try:
        server.boto("s3").create_bucket(Bucket="yard")
        load = Load(server)
        load.start()
        killed_agents = found_again = 0
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.1, 1.2))
            running = server.agents()
            if running and chance.random() < 0.35:
                try:
                    os.kill(chance.choice(running), signal.SIGKILL)
                    killed_agents += 1
                except ProcessLookupError:
                    pass  # it has just ended
            else:
                server.kill()
                outlived = set(server.agents())
                server.start()
                found_again += len(outlived & set(server.agents()))
        load.ending.set()
        load.join()
        assert len(load.acknowledged) >= KILLS / 4, "there was load"
        assert found_again, "agents outlived a server"

        sagemaker, logs = server.boto("sagemaker"), server.boto("logs")
        failed = 0
        for name, hosts in load.acknowledged:
            done = jobs.wait_until(sagemaker, name)
            if done["TrainingJobStatus"] == "Failed":
                assert done["FailureReason"].startswith("InternalServerError"), (
                    name,
                    done["FailureReason"],
                )
                failed += 1
            else:
                assert done["TrainingJobStatus"] == "Completed", (name, done["TrainingJobStatus"])
                for host in range(1, hosts + 1):
                    assert jobs.log_lines(logs, name, host) == [
                        "begins",
                        "ends",
                    ], "each line once, in order"
        assert failed <= killed_agents, "only a job whose agent was killed may fail"
        try:
            wait_for(
                lambda: not leftovers.left(before, leftovers.picture(server.data)),
                "everything to be removed",
                60,
            )
        except AssertionError:
            pass  # the checks below report what is left
    finally:
        left = leftovers.left(before, leftovers.picture(server.data))
        server.clean()
    assert not left
    assert not leftovers.left(before, leftovers.picture(server.data))


def test_a_job_outlives_the_server(start: Callable[..., Server], tmp_path: pathlib.Path) -> None:
    server = start()
    server.boto("s3").create_bucket(Bucket="yard")
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(
        **jobs.request("outlives", "for i in 1 2 3 4 5 6; do echo line $i; sleep 0.5; done")
    )
    jobs.wait_until(sagemaker, "outlives", ("Training",))
    server.stop()
    running = server.agents()
    assert running, "SIGTERM ends the server, not the job"
    wait_for(
        lambda: (
            not any(
                "sleep 0.5" in command for command in leftovers.picture(server.data)["processes"]
            )
        ),
        "the job to continue alone",
    )
    server.start()
    done = jobs.wait_until(server.boto("sagemaker"), "outlives")
    assert done["TrainingJobStatus"] == "Completed"
    assert jobs.log_lines(server.boto("logs"), "outlives") == [f"line {i}" for i in range(1, 7)]


def test_the_sweep_cleans_what_a_dead_server_left(tmp_path: pathlib.Path) -> None:
    server = Server(tmp_path / "data")
    before = leftovers.picture(server.data)
    server.start()
    server.boto("s3").create_bucket(Bucket="yard")
    server.boto("sagemaker").create_training_job(**jobs.request("abandoned", "sleep 1000", hosts=2))
    jobs.wait_until(server.boto("sagemaker"), "abandoned", ("Training",))
    server.kill()
    for pid in server.agents():
        os.kill(pid, signal.SIGKILL)
    server.clean()
    left = leftovers.left(before, leftovers.picture(server.data))
    assert left.keys() <= {"attempts"}, "only what the server must read stays"
    server.start()
    assert jobs.wait_until(server.boto("sagemaker"), "abandoned")["FailureReason"].startswith(
        "InternalServerError"
    )
    wait_for(
        lambda: not leftovers.left(before, leftovers.picture(server.data)), "the rest to be removed"
    )
    server.clean()
