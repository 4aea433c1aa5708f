"""A two-host job that keeps checkpoints is interrupted again and again, wherever it is: while it downloads, trains, brings
a checkpoint over, uploads its model; by a word to its processes, by the death of its runtime, of an agent. It ends with
exactly the weights of the job that nobody interrupted.

8 interruptions by default; TRAINYARD_INTERRUPTIONS=100 is what the product promises, and takes some ten minutes.
"""

import collections
import glob
import io
import json
import os
import random
import signal
import tarfile
import time

import pytest

import jobs
import trainyard_server
from trainyard_server import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")
INTERRUPTIONS = int(os.environ.get("TRAINYARD_INTERRUPTIONS", "8"))
SEED = int(os.environ.get("TRAINYARD_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
PLACES = ("download", "training", "checkpoint", "model")  # a tenth of all at least in each
VICTIMS = ("process", "runtime", "agent")
STEPS = 1000 + 120 * INTERRUPTIONS  # more than are trained meanwhile
SECONDS_MAX = 60 + 20 * INTERRUPTIONS
DOWNLOAD_BYTES, DOWNLOAD_OBJECTS = 2_000_000, 30
TRAINER = os.path.join(trainyard_server.ROOT, "tests", "system", "interrupted_trainer.py")


def start(server, name):
    server.boto("sagemaker").create_training_job(**jobs.request(
        name, f"exec python3 /opt/ml/input/data/code/interrupted_trainer.py {STEPS}", hosts=2,
        channels={"code": ("s3://yard/code/", "FullyReplicated"), "bulk": ("s3://yard/bulk/", "FullyReplicated")},
        CheckpointConfig={"S3Uri": f"s3://yard/checkpoints/{name}"},
        EnableManagedSpotTraining=True, StoppingCondition={"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200}))


def weights(server, name):
    body = server.boto("s3").get_object(Bucket="yard", Key=f"models/{name}/output/model.tar.gz")["Body"].read()
    return json.load(tarfile.open(fileobj=io.BytesIO(body)).extractfile("weights.json"))


class Victims:
    """Of one job: where it is, and what of it can be ended."""

    def __init__(self, server, name):
        self.server, self.name = server, name
        self.sagemaker = server.boto("sagemaker")
        os.environ["AWS_DATA_PATH"] = server.env["AWS_DATA_PATH"]
        self.own = server.boto("trainyard")

    def describe(self):
        return self.sagemaker.describe_training_job(TrainingJobName=self.name)

    def directories(self):
        """Of the hosts of its present attempt."""
        return sorted(glob.glob(os.path.join(self.server.data, "attempts", f"{self.attempt()}", "[0-9]*")))

    def attempt(self):
        found = [entry for entry in glob.glob(os.path.join(self.server.data, "attempts", "*a*"))
                 if any(self.name in open(order, encoding="utf-8").read() for order in glob.glob(f"{entry}/*/order.json"))]
        return os.path.basename(max(found, key=lambda entry: int(entry.rsplit("a", 1)[1]))) if found else "none"

    def place(self):
        """One of PLACES, or None: between attempts."""
        description = self.describe()
        status = description["SecondaryStatus"]
        assert status not in ("Failed", "Stopped"), description["FailureReason"]
        if status == "Training":
            # As the agents see it: a job's volume is mounted for its agent only.
            uploading = [path for directory in self.directories() for agent in self.processes(directory, "trainyard-agent")
                         for path in glob.glob(f"/proc/{agent}/root{directory}/ml/checkpoints/*.sagemaker-uploading")]
            return "checkpoint" if uploading else "training"
        return {"Downloading": "download", "Uploading": "model"}.get(status)

    def processes(self, host_directory, program):
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if os.path.basename(words[0]).decode(errors="replace") == program and any(host_directory.encode() in word for word in words):
                found.append(int(path.split("/")[2]))
        return found

    def end(self, victim, chance):
        """Whether there was one."""
        if victim == "process":
            try:
                self.own.interrupt_training_job(TrainingJobName=self.name, HostName=f"algo-{chance.randint(1, 2)}", NoticeInSeconds=chance.choice((0, 0, 5)))
            except self.own.exceptions.ClientError:
                return False
            return True
        directories = self.directories()
        if not directories:
            return False
        found = self.processes(chance.choice(directories), {"runtime": "crun", "agent": "trainyard-agent"}[victim])
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                return False
        return bool(found)


def interrupted(description):
    return sum(one["Status"] == "Interrupted" for one in description["SecondaryStatusTransitions"])


def test_the_weights_are_those_of_the_job_that_nobody_interrupted(tmp_path):
    print(f"note: repeat with TRAINYARD_SEED={SEED}")
    chance = random.Random(SEED)
    server = trainyard_server.Server(tmp_path / "data", "[jobs]\nstop_grace_seconds = 1\n[[machine]]\nname = 'box'\ncpus = 16.0\nmemory_gib = 64.0\n")
    server.start()
    try:
        s3 = server.boto("s3")
        s3.create_bucket(Bucket="yard")
        with open(TRAINER, "rb") as file:
            s3.put_object(Bucket="yard", Key="code/interrupted_trainer.py", Body=file.read())
        for number in range(DOWNLOAD_OBJECTS):
            s3.put_object(Bucket="yard", Key=f"bulk/{number}", Body=random.Random(number).randbytes(DOWNLOAD_BYTES))
        start(server, "undisturbed")
        assert jobs.wait_until(server.boto("sagemaker"), "undisturbed", seconds_max=SECONDS_MAX)["TrainingJobStatus"] == "Completed"
        start(server, "disturbed")
        counts = disturb(server, "disturbed", chance)
        done = jobs.wait_until(server.boto("sagemaker"), "disturbed", seconds_max=SECONDS_MAX)
        print("note:", dict(counts), {name: done[name] for name in ("TrainingTimeInSeconds", "BillableTimeInSeconds")})
        assert done["TrainingJobStatus"] == "Completed", done
        assert interrupted(done) >= INTERRUPTIONS
        for place in PLACES:
            assert counts[place] >= max(1, INTERRUPTIONS // 10), counts
        assert weights(server, "disturbed") == weights(server, "undisturbed")
        assert done["BillableTimeInSeconds"] < done["TrainingTimeInSeconds"]
    finally:
        server.clean()


def disturb(server, name, chance):
    """INTERRUPTIONS of them; how many in each place, and of each victim. The model's come last: before, there is none."""
    job = Victims(server, name)
    counts = collections.Counter()
    share = max(1, INTERRUPTIONS // 8)
    wanted = ["download"] * share + ["checkpoint"] * share + ["training"] * (INTERRUPTIONS - 3 * share)
    chance.shuffle(wanted)
    wanted += ["model"] * share
    for number, place in enumerate(wanted):
        victim = VICTIMS[number % len(VICTIMS)]
        if victim == "runtime" and place in ("download", "model"):
            victim = chance.choice(("process", "agent"))  # there is no runtime yet, or no more
        before = interrupted(job.describe())
        wait_for(lambda: job.place() == place, f"the job to be in {place} for interruption {number}", SECONDS_MAX, 0.01)
        if place == "training":
            wait_uniformly(job, chance)
        # Where it is when it happens is what counts.
        def happens():
            at = job.place()
            assert job.describe()["TrainingJobStatus"] == "InProgress", (number, counts, job.describe())
            return at if at and job.end(victim, chance) else None
        at = wait_for(happens, f"a {victim} to end", SECONDS_MAX, 0.01)
        wait_for(lambda: interrupted(job.describe()) > before, f"interruption {number} of a {victim} in {at} to be seen", SECONDS_MAX)
        counts[at] += 1
        counts[victim] += 1
    return counts


def wait_uniformly(job, chance):
    """Some part of the first two seconds of training."""
    steps = chance.randint(0, 40)
    for _ in range(steps):
        if job.place() not in ("training", "checkpoint"):
            return
        time.sleep(0.05)
