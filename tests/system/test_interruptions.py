"""Tests a two-host job with checkpoints that is interrupted repeatedly: while it downloads, trains,
copies a checkpoint or uploads its model; by a signal to its processes, or the death of its runtime
or of an agent. It trains until the last interruption except those of its model, and ends with
exactly the weights of an uninterrupted job of as many steps.

The times are drawn from a seed: first a phase, by the number of interruptions wanted in each, then
a moment that is uniform over the length of the phase without interruptions (of the model's upload,
over its first three quarters). An interruption counts for the phase in which it happens.

8 interruptions by default; `./yard test --interruptions 100` is the guarantee of the product, takes
some ten minutes, and writes tests/results/interruptions.json."""

import collections
import contextlib
import datetime
import glob
import io
import json
import os
import pathlib
import platform
import random
import signal
import tarfile
import time
from typing import Any

import pytest

from tests import jobs, trainyard_server
from tests.trainyard_server import Server, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")
INTERRUPTIONS = int(os.environ.get("TRAINYARD_INTERRUPTIONS", "8"))
SEED = int(os.environ.get("TRAINYARD_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
PLACES = ("download", "training", "checkpoint", "model")  # a tenth of all at least in each
RESULT = os.environ.get("TRAINYARD_RESULT", "")  # the file for the results
INTERRUPTED_JOBS = ("process", "runtime", "agent")
MEASURED_STEPS = 20  # of the job that shows how long each phase takes: one checkpoint
SECONDS_MAX = 60 + 20 * INTERRUPTIONS
DOWNLOAD_BYTES, DOWNLOAD_OBJECTS = 2_000_000, 60
# The first of training, in which every attempt is that is let train;
# and about what bringing a checkpoint over takes.
TRAINING_SECONDS, CHECKPOINT_SECONDS = 2.0, 0.1
CHECKPOINT_TRIES_MAX = 20  # a checkpoint may end before the drawn time
# of its length, the first: a job that is complete can no longer be interrupted,
# and this time it may be shorter
MODEL_PART = 0.75
INTERRUPTIONS_MAX = 3 * INTERRUPTIONS + 8  # including those in another place than planned
TRAINER = os.path.join(trainyard_server.ROOT, "tests", "system", "interrupted_trainer.py")


def start(server: Server, name: str, steps: int | None = None) -> None:
    """Starts a job that trains this number of steps, or until let_end()."""
    server.boto("sagemaker").create_training_job(
        **jobs.request(
            name,
            f"exec python3 /opt/ml/input/data/code/interrupted_trainer.py {steps or ''}",
            hosts=2,
            channels={
                "code": ("s3://yard/code/", "FullyReplicated"),
                "bulk": ("s3://yard/bulk/", "FullyReplicated"),
            },
            CheckpointConfig={"S3Uri": f"s3://yard/checkpoints/{name}"},
            EnableManagedSpotTraining=True,
            StoppingCondition={"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200},
        )
    )


def model(server: Server, name: str) -> dict[str, Any]:
    """Returns the weights of a completed job and their step."""
    body = (
        server.boto("s3")
        .get_object(Bucket="yard", Key=f"models/{name}/output/model.tar.gz")["Body"]
        .read()
    )
    return json.load(tarfile.open(fileobj=io.BytesIO(body)).extractfile("weights.json"))


class InterruptedJobs:
    """Interrupts one job: finds its processes, and ends some of them."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name = server, name
        self.sagemaker = server.boto("sagemaker")
        os.environ["AWS_DATA_PATH"] = server.env["AWS_DATA_PATH"]
        self.own = server.boto("trainyard")

    def describe(self) -> dict[str, Any]:
        return self.sagemaker.describe_training_job(TrainingJobName=self.name)

    def directories(self) -> list[str]:
        """Returns the directories of the hosts of the current attempt."""
        return sorted(
            glob.glob(os.path.join(self.server.data, "attempts", f"{self.attempt()}", "[0-9]*"))
        )

    def attempt(self) -> str:
        found = [
            entry
            for entry in glob.glob(os.path.join(self.server.data, "attempts", "*a*"))
            if any(
                self.name in open(order, encoding="utf-8").read()
                for order in glob.glob(f"{entry}/*/order.json")
            )
        ]
        return (
            os.path.basename(max(found, key=lambda entry: int(entry.rsplit("a", 1)[1])))
            if found
            else "none"
        )

    def place(self) -> str | None:
        """Returns the phase of the job, one of PLACES, or None between attempts."""
        description = self.describe()
        status = description["SecondaryStatus"]
        assert status not in ("Completed", "Failed", "Stopped"), description
        if status == "Training":
            # The path in the agents' namespaces: a job's volume is mounted for its agent only.
            uploading = [
                path
                for directory in self.directories()
                for agent in self.processes(directory, "trainyard-agent")
                for path in glob.glob(
                    f"/proc/{agent}/root{directory}/ml/checkpoints/*.sagemaker-uploading"
                )
            ]
            return "checkpoint" if uploading else "training"
        return {"Downloading": "download", "Uploading": "model"}.get(status)

    def let_end(self) -> None:
        """Lets training end at the next checkpoint of the current attempt: the file is part of the
        checkpoints. Has no effect while algo-1 does not run, so that it is called repeatedly."""
        for directory in self.directories()[:1]:
            for agent in self.processes(directory, "trainyard-agent"):
                with contextlib.suppress(OSError):
                    pathlib.Path(f"/proc/{agent}/root{directory}/ml/checkpoints/end").touch()

    def finish(self) -> dict[str, Any]:
        """Waits for the end of the job, and lets it end; returns its description."""

        def ended() -> bool:
            self.let_end()
            return self.describe()["TrainingJobStatus"] in jobs.FINAL

        wait_for(ended, f"{self.name} to end", SECONDS_MAX)
        return self.describe()

    def processes(self, host_directory: str, program: str) -> list[int]:
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if os.path.basename(words[0]).decode(errors="replace") == program and any(
                host_directory.encode() in word for word in words
            ):
                found.append(int(path.split("/")[2]))
        return found

    def end(self, interrupted_job: str, chance: random.Random) -> bool:
        """Ends the chosen part of the job; returns False if there was none to end."""
        if interrupted_job == "process":
            try:
                self.own.interrupt_training_job(
                    TrainingJobName=self.name,
                    HostName=f"algo-{chance.randint(1, 2)}",
                    NoticeInSeconds=chance.choice((0, 0, 5)),
                )
            except self.own.exceptions.ClientError:
                return False
            return True
        directories = self.directories()
        if not directories:
            return False
        found = self.processes(
            chance.choice(directories),
            {"runtime": "crun", "agent": "trainyard-agent"}[interrupted_job],
        )
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                return False
        return bool(found)


def train_undisturbed(server: Server, name: str, steps: int) -> dict[str, Any]:
    """Returns the description of a job that trained this number of steps without interruption."""
    start(server, name, steps)
    done = jobs.wait_until(server.boto("sagemaker"), name, seconds_max=SECONDS_MAX)
    assert done["TrainingJobStatus"] == "Completed", done
    return done


def interrupted(description: dict[str, Any]) -> int:
    return sum(one["Status"] == "Interrupted" for one in description["SecondaryStatusTransitions"])


def test_the_weights_equal_an_uninterrupted_jobs(tmp_path: pathlib.Path) -> None:
    print(f"note: repeat with TRAINYARD_SEED={SEED}")
    chance = random.Random(SEED)
    server = trainyard_server.Server(
        tmp_path / "data",
        "[jobs]\nstop_grace_seconds = 1\n[[machine]]\nname = 'box'\ncpus = 16.0\nmemory_gib ="
        " 64.0\n",
    )
    server.start()
    try:
        s3 = server.boto("s3")
        s3.create_bucket(Bucket="yard")
        with open(TRAINER, "rb") as file:
            s3.put_object(Bucket="yard", Key="code/interrupted_trainer.py", Body=file.read())
        for number in range(DOWNLOAD_OBJECTS):
            s3.put_object(
                Bucket="yard",
                Key=f"bulk/{number}",
                Body=random.Random(number).randbytes(DOWNLOAD_BYTES),
            )
        lengths = phase_lengths(train_undisturbed(server, "measured", MEASURED_STEPS))
        job = InterruptedJobs(server, "disturbed")
        start(server, "disturbed")
        happened = disturb(job, chance, lengths)
        done = job.finish()
        counts = collections.Counter(one["place"] for one in happened)
        print(
            "note:",
            dict(counts),
            dict(collections.Counter(one["victim"] for one in happened)),
            lengths,
        )
        assert done["TrainingJobStatus"] == "Completed", done
        assert len(happened) >= INTERRUPTIONS and interrupted(done) >= len(happened)
        for place in PLACES:
            assert counts[place] >= (
                INTERRUPTIONS // 10 if INTERRUPTIONS >= 10 else INTERRUPTIONS // 8
            ), counts
        disturbed = model(server, "disturbed")
        train_undisturbed(server, "undisturbed", disturbed["step"])
        assert disturbed == model(server, "undisturbed")
        assert done["BillableTimeInSeconds"] < done["TrainingTimeInSeconds"]
        if RESULT:
            write_result(happened, lengths, done, disturbed["step"])
    finally:
        server.clean()


def phase_lengths(description: dict[str, Any]) -> dict[str, Any]:
    """Returns place -> its length in seconds; for checkpoints an estimate, since no status shows
    them."""
    seconds = {
        one["Status"]: (one["EndTime"] - one["StartTime"]).total_seconds()
        for one in description["SecondaryStatusTransitions"]
        if "EndTime" in one
    }
    return {
        "download": seconds["Downloading"],
        "training": TRAINING_SECONDS,
        "checkpoint": CHECKPOINT_SECONDS,
        "model": seconds["Uploading"],
    }


def disturb(
    job: InterruptedJobs, chance: random.Random, lengths: dict[str, float]
) -> list[dict[str, Any]]:
    """Makes at least INTERRUPTIONS of them, each with a place, a target and a time; those of the
    model last, since there is none before. An interruption in another place than planned is drawn
    again, until each place has its number."""
    share = max(1, INTERRUPTIONS // 8)
    wanted = collections.Counter(
        download=share, checkpoint=share, model=share, training=INTERRUPTIONS - 3 * share
    )
    happened = []
    while +wanted:
        number = len(happened)
        assert number < INTERRUPTIONS_MAX, (wanted, happened)
        before_the_model = {
            place: count for place, count in wanted.items() if count > 0 and place != "model"
        }
        place = chance.choices(*zip(*before_the_model.items()))[0] if before_the_model else "model"
        interrupted_job = INTERRUPTED_JOBS[number % len(INTERRUPTED_JOBS)]
        if interrupted_job == "runtime" and place in ("download", "model"):
            interrupted_job = chance.choice(
                ("process", "agent")
            )  # the runtime has not started yet, or has ended
        past = (
            "training" if place == "download" else place
        )  # the phase may end before it is observed
        before = interrupted(job.describe())

        def reached() -> str | None:
            if place == "model":
                job.let_end()
            at = job.place()
            return at if at in (place, past) else None

        for _ in range(CHECKPOINT_TRIES_MAX):
            place = wait_for(
                reached,
                f"the job to be in {place} for interruption {number}",
                SECONDS_MAX,
                0.005,
            )
            began = time.monotonic()
            moment = chance.random() * lengths[place] * (MODEL_PART if place == "model" else 1)
            while (left := began + moment - time.monotonic()) > 0:
                time.sleep(left)
            if place != "checkpoint" or job.place() == place:
                break  # there will be another checkpoint, but not another download

        def happens() -> Any:
            assert job.describe()["TrainingJobStatus"] == "InProgress", (
                number,
                happened,
                job.describe(),
            )
            at = job.place()
            return at if at and job.end(interrupted_job, chance) else None

        at = wait_for(happens, f"a {interrupted_job} to end", SECONDS_MAX, 0.005)
        after = time.monotonic() - began
        wait_for(
            lambda: interrupted(job.describe()) > before,
            f"interruption {number} of a {interrupted_job} in {at} to be seen",
            SECONDS_MAX,
        )
        print(number, at, interrupted_job, flush=True)
        happened.append(
            {
                "place": at,
                "meant": place,
                "victim": interrupted_job,
                "moment": round(moment, 3),
                "after": round(after, 3),
            }
        )
        wanted[at] -= 1
    return happened


def write_result(
    happened: list[dict[str, Any]], lengths: dict[str, float], done: dict[str, Any], steps: int
) -> None:
    counts = {
        place: dict(collections.Counter(one["victim"] for one in happened if one["place"] == place))
        for place in PLACES
    }
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(file.readline().split()[1]) / (1 << 20)
    record = {
        "date": datetime.date.today().isoformat(),
        "machine": {
            "cores": os.cpu_count(),
            "memory_gib": round(memory, 1),
            "kernel": platform.release(),
        },
        "interruptions": len(happened),
        "seed": SEED,
        "hosts": 2,
        "steps": steps,
        "outcome": "the weights of the uninterrupted job",
        "by_phase": {place: sum(counts[place].values()) for place in PLACES},
        "by_phase_and_victim": counts,
        "phase_seconds_undisturbed": {
            place: round(seconds, 3) for place, seconds in lengths.items()
        },
        # Counts by quarters of the planned phase, which must be uniform.
        "by_phase_and_quarter": {
            place: [
                sum(
                    int(4 * one["moment"] / lengths[place]) == quarter
                    for one in happened
                    if one["meant"] == place
                )
                for quarter in range(4)
            ]
            for place in PLACES
        },
        "training_seconds": done["TrainingTimeInSeconds"],
        "billable_seconds": done["BillableTimeInSeconds"],
        "happened": [
            f"{one['place']}: {one['victim']}, {one['after']} s after it was seen to begin"
            for one in happened
        ],
    }
    os.makedirs(os.path.dirname(RESULT), exist_ok=True)
    with open(RESULT, "w", encoding="utf-8") as file:
        file.write(json.dumps(record, indent=1) + "\n")
