"""Measures beside peers, in one run, interleaved; prints a table and writes
bench/results/NAME.json.

  ./yard bench            all of them
  ./yard bench NAME       one of them (an unknown NAME lists them)

rows.py says what a row is. Machines are shared and noisy:
a ratio of one run says more than a time of two.
"""

import datetime
import json
import os
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from rows import BIN, RESULTS, ROOT, row

sys.path.insert(0, os.path.join(ROOT, "tests"))

import disk
import jobs
import oci
import plot
import progress
import slurm_peer
import trainyard_server
from attack import attack
from collective_benches import collectives, links, overlap, torch
from projection import projection

START_ROUNDS = 15
START_UP_ROUNDS = 5
START_UP_COLD = "an image, cold: 64 MiB in 9 layers from a registry on this machine"
BACK_TO_BACK_BLOCKS, BACK_TO_BACK_JOBS = 4, 11
FLOOD_ROUNDS = 5
FLOOD_MEGABYTES = 500
FLOOD_LINE = (
    "epoch 3 step 1700 of 12000: loss 0.25731 learning rate 0.001 samples per second 12345.6 and"
    " so on"
)
IMAGE = "localhost/trainyard-bench:1"
# Of the bench of cold images. A framework image with CUDA is 12288,
# and asks for a disk of 45 GB and ten minutes.
COLD_IMAGE_MIB = int(os.environ.get("TRAINYARD_BENCH_IMAGE_MIB", "1024"))
COLD_IMAGE_LAYERS = 40
COLD_ROUNDS = 3
# Of the bench of arrays. Fewer say less: the peer's start and end are in it.
ARRAY_CHILDREN = int(os.environ.get("TRAINYARD_BENCH_ARRAY_CHILDREN", "10000"))
SCHEDULE_ROUNDS = 3
ARRAY_ROUNDS = int(os.environ.get("TRAINYARD_BENCH_ARRAY_ROUNDS", "3"))
# Children at once, as many as the peer has: on a machine that is busy with other things who has
# more gets more of it.
ARRAY_CPUS = int(os.environ.get("TRAINYARD_BENCH_ARRAY_CPUS", "64"))


def rounds(program, *arguments):
    """side -> list of the round's measurements, as a C++ bench prints them."""
    done = subprocess.run(
        [os.path.join(BIN, program), *arguments], check=True, capture_output=True, text=True
    )
    sides = {"ours": [], "peer": []}
    for line in done.stdout.splitlines():
        one = json.loads(line)
        sides[one["side"]].append(one)
    return sides


def values(side, name):
    return [one[name] for one in side]


def with_server(config="", below=os.path.join(ROOT, "build")):
    directory = tempfile.mkdtemp(prefix="trainyard-bench-", dir=below)
    return trainyard_server.Server(os.path.join(directory, "data"), config)


# -- benches --------------------------------------------------------------------------------------


def ledger():
    """Group commit beside one fsync a command."""
    with tempfile.TemporaryDirectory(dir=os.path.join(ROOT, "build")) as directory:
        sides = rounds("commit_ledger", directory)
    return [
        row(
            "ledger",
            "commit, groups of 64",
            "commands/s",
            values(sides["ours"], "commands_per_second"),
            values(sides["peer"], "commands_per_second"),
            "one by one",
            "more than one by one",
            lambda ours, peer: ours > peer,
        )
    ]


def policy():
    """A request decided by ten policies, beside the slow reference of the tests."""
    sides = rounds("evaluate_policies")
    return [
        row(
            "policy",
            "10 policies, one request",
            "us",
            values(sides["ours"], "microseconds"),
            values(sides["peer"], "microseconds"),
            "the tests' reference, which reads the documents again",
            "< 5 us",
            lambda ours, peer: ours < 5,
        )
    ]


def describe():
    """DescribeTrainingJob beside the same HTTP and SigV4 answering a constant."""
    server = with_server("[[machine]]\nname = 'small'\ncpus = 1.0\nmemory_gib = 1.0\n").start()
    try:
        server.boto("sagemaker").create_training_job(
            **jobs.request("described", instance_type="ml.m5.24xlarge")
        )
        sides = rounds("load_api", "describe", *keys(server), "--job", "described")
    finally:
        server.clean()
    return [
        row(
            "describe",
            "16 connections",
            "requests/s",
            values(sides["ours"], "requests_per_second"),
            values(sides["peer"], "requests_per_second"),
            "same HTTP and SigV4, a constant",
            "ratio >= 0.5",
            lambda ours, peer: ours >= 0.5 * peer,
        ),
        row(
            "describe",
            "16 connections, p50",
            "ms",
            values(sides["ours"], "p50_ms"),
            values(sides["peer"], "p50_ms"),
            "same HTTP and SigV4, a constant",
            "shown",
            lambda ours, peer: True,
        ),
    ]


def create():
    """CreateTrainingJob with durability on: many clients share commits, one cannot."""
    server = with_server("[[machine]]\nname = 'small'\ncpus = 1.0\nmemory_gib = 1.0\n").start()
    try:
        request = os.path.join(server.data, "request.json")
        with open(request, "w", encoding="utf-8") as file:
            json.dump(jobs.request("x", instance_type="ml.m5.24xlarge"), file)
        sides = rounds(
            "load_api", "create", *keys(server), "--request", request, "--prefix", "made"
        )
    finally:
        server.clean()
    return [
        row(
            "create",
            "64 connections, durable",
            "jobs/s",
            values(sides["ours"], "requests_per_second"),
            values(sides["peer"], "requests_per_second"),
            "one connection, a commit each",
            "more than one by one",
            lambda ours, peer: ours > peer,
        )
    ]


SUBMIT_ROUNDS, SUBMIT_REQUESTS = 7, 2000


def batch_yard(server, **queues):
    """An environment over the whole machine, and queues by name with their tags."""
    batch = server.boto("batch")
    environment = batch.create_compute_environment(
        computeEnvironmentName="all",
        type="MANAGED",
        computeResources={
            "type": "EC2",
            "minvCpus": 0,
            "maxvCpus": 4096,
            "instanceTypes": ["optimal"],
        },
    )
    for name, tags in queues.items():
        batch.create_job_queue(
            jobQueueName=name,
            priority=1,
            tags=tags,
            computeEnvironmentOrder=[
                {"order": 1, "computeEnvironment": environment["computeEnvironmentArn"]}
            ],
        )
    return batch


def definition(batch, name, vcpus):
    batch.register_job_definition(
        jobDefinitionName=name,
        type="container",
        containerProperties={
            "image": "trainyard/machine",
            "command": ["/bin/true"],
            "resourceRequirements": [
                {"type": "VCPU", "value": str(vcpus)},
                {"type": "MEMORY", "value": "64"},
            ],
        },
    )


def submit():
    """SubmitJob with durability on: many clients share commits, one cannot.
    The jobs wait for more than there is."""
    server = with_server("[[machine]]\nname = 'small'\ncpus = 1.0\nmemory_gib = 1.0\n").start()
    try:
        definition(batch_yard(server, queue={"bench": "submit"}), "large", 96)
        request = os.path.join(server.data, "request.json")
        with open(request, "w", encoding="utf-8") as file:
            json.dump({"jobName": "one", "jobQueue": "queue", "jobDefinition": "large"}, file)
        sides = rounds(
            "load_api",
            "submit",
            *keys(server),
            "--request",
            request,
            "--rounds",
            str(SUBMIT_ROUNDS),
            "--requests",
            str(SUBMIT_REQUESTS),
        )
    finally:
        server.clean()
    return [
        row(
            "submit",
            "SubmitJob, 64 connections, durable",
            "jobs/s",
            values(sides["ours"], "requests_per_second"),
            values(sides["peer"], "requests_per_second"),
            "one connection, a commit each",
            ">= 1000",
            lambda ours, peer: ours >= 1000,
        )
    ]


def array():
    """An array of children that do nothing, submitted, run and finished,
    beside the same array under Slurm."""
    with disk.Disk() as path:
        return array_on(path)


def array_on(path):
    server = with_server(
        f"[[machine]]\nname = 'box'\ncpus = {ARRAY_CPUS}.0\nmemory_gib = 256.0\n", path
    ).start()
    slurm = slurm_peer.Slurm(os.path.join(path, "slurm"))
    ours, peers = {"isolated": [], "reuse": []}, []
    try:
        slurm.start()
        batch = batch_yard(
            server,
            isolated={"trainyard:reuse-hosts": "false"},
            reuse={"trainyard:reuse-hosts": "true"},
        )
        definition(batch, "true", 1)

        def rate(queue):
            began = time.monotonic()
            one = batch.submit_job(
                jobName="array",
                jobQueue=queue,
                jobDefinition="true",
                arrayProperties={"size": ARRAY_CHILDREN},
            )["jobId"]
            while (status := batch.describe_jobs(jobs=[one])["jobs"][0]["status"]) not in (
                "SUCCEEDED",
                "FAILED",
            ):
                time.sleep(slurm_peer.POLL_SECONDS)
            assert status == "SUCCEEDED", status
            seconds = time.monotonic() - began
            trainyard_server.wait_for(
                lambda: not os.listdir(os.path.join(server.data, "attempts")),
                "the last child to be gone",
            )
            return ARRAY_CHILDREN / seconds

        for side in progress.rounds([*ours, "slurm"] * ARRAY_ROUNDS):
            if side in ours:
                ours[side].append(rate(side))
            else:
                peers.append(ARRAY_CHILDREN / slurm.array(ARRAY_CHILDREN))
    finally:
        slurm.stop()
        server.clean()
    load = f"load {os.getloadavg()[1]:.1f}"
    return [
        row(
            "array",
            f"{ARRAY_CHILDREN:,} children of true, full isolation of each",
            "children/s",
            ours["isolated"],
            peers,
            f"Slurm, bench/slurm/slurm.conf; {load}",
            "ratio >= 1.0",
            lambda ours, peer: ours >= peer,
        ),
        row(
            "array",
            f"{ARRAY_CHILDREN:,} children of true, hosts used again",
            "children/s",
            ours["reuse"],
            peers,
            f"Slurm, bench/slurm/slurm.conf; {load}",
            "ratio >= 3.0",
            lambda ours, peer: ours >= 3 * peer,
        ),
    ]


# Mean wait to admission that Kueue publishes for its baseline, by class:
# what its own tests allow at most.
KUEUE_SECONDS = {"large": 6.7, "medium": 77, "small": 215}
KUEUE_USE_MIN = 0.58


def schedule():
    """The scheduler alone: placements a second on one core, growth,
    and Kueue's published baseline."""

    def one(mode):
        return json.loads(
            subprocess.run(
                [os.path.join(BIN, "schedule_yards"), mode],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )

    rates = [one("rate") for _ in progress.rounds(range(SCHEDULE_ROUNDS))]
    growth, kueue = one("growth"), one("kueue")
    rows = [
        row(
            "schedule",
            "100,000 waiting jobs, 5,000 hosts, one core",
            "placements/s",
            values(rates, "placements_per_second"),
            None,
            None,
            ">= 5000",
            lambda ours, peer: ours >= 5000,
        ),
        row(
            "schedule",
            "the same, a turn with its snapshot",
            "ms",
            values(rates, "turn_ms"),
            None,
            None,
            "shown",
            lambda ours, peer: True,
        ),
        row(
            "schedule",
            "0 -> 4096 vCPU, machines come in 30 s",
            "s",
            [growth["grown_seconds"]],
            None,
            None,
            "shown",
            lambda ours, peer: True,
        ),
        row(
            "schedule",
            "4096 -> 0 vCPU, idle for 60 s",
            "s",
            [growth["gone_seconds"] - growth["over_seconds"]],
            None,
            None,
            "shown",
            lambda ours, peer: True,
        ),
    ]
    for name, seconds in KUEUE_SECONDS.items():
        rows.append(
            row(
                "schedule",
                f"Kueue's baseline, mean wait of {name}",
                "s",
                [kueue[f"{name}_s"]],
                [seconds],
                "Kueue, as published: with an API server; ours is simulated",
                "no more than Kueue's",
                lambda ours, peer: ours <= peer,
            )
        )
    return rows + [
        row(
            "schedule",
            "Kueue's baseline, use of the queues",
            "of 1",
            [kueue["used"]],
            [KUEUE_USE_MIN],
            "Kueue, as published",
            ">= 0.58",
            lambda ours, peer: ours >= KUEUE_USE_MIN,
        ),
        row(
            "schedule",
            "Kueue's baseline, useful: without what evictions threw away",
            "of 1",
            [kueue["useful"]],
            [KUEUE_USE_MIN],
            "Kueue, as published",
            ">= 0.58",
            lambda ours, peer: ours >= KUEUE_USE_MIN,
        ),
        row(
            "schedule",
            "Kueue's baseline, evictions",
            "workloads",
            [kueue["evictions"]],
            None,
            None,
            "shown",
            lambda ours, peer: True,
        ),
    ]


def keys(server):
    return [
        "--server",
        server.listen,
        "--id",
        server.env["AWS_ACCESS_KEY_ID"],
        "--secret",
        server.env["AWS_SECRET_ACCESS_KEY"],
    ]


def podman_environment(directory):
    """podman where it must be helped: hybrid cgroups and no right to raise limits."""
    config = os.path.join(directory, "containers.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write(
            '[containers]\ndefault_ulimits = ["nofile=1024:1024",'
            ' "nproc=4096:4096"]\n[engine]\ncgroup_manager = "cgroupfs"\n'
        )
    return dict(os.environ, CONTAINERS_CONF=config)


def podman_script(environment, script, *arguments):
    hide = "set -e; umount /sys/fs/cgroup/unified 2>/dev/null || true; "
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", hide + script, "sh", *arguments],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def podman(environment, *arguments):
    return podman_script(environment, 'exec podman "$@"', *arguments)


def uptime():
    """The clock that a container without GNU date can tell as well."""
    with open("/proc/uptime", encoding="utf-8") as file:
        return float(file.read().split()[0])


def make_image(environment):
    podman_script(
        environment,
        f"""c=$(buildah from scratch); m=$(buildah mount $c); mkdir -p $m/bin; cp /bin/busybox $m/bin/busybox
        for a in sh date cat sleep yes head; do ln -s busybox $m/bin/$a; done; buildah umount $c >/dev/null
        buildah config --env PATH=/bin $c; buildah commit -q $c {IMAGE} >/dev/null; buildah rm $c >/dev/null""",
    )


def podman_start_milliseconds(environment):
    """`podman run` -> the user's process."""
    asked = uptime()
    began = float(
        podman(
            environment, "run", "--rm", "--network=bridge", IMAGE, "sh", "-c", "cat /proc/uptime"
        ).split()[0]
    )
    return (began - asked) * 1000


def start():
    """Accepted -> the user's process, beside `podman run` with a bridge.
    The process prints its clock first of all.

    Each start begins when the one before is gone altogether,
    as `podman run --rm` returns when its container is.
    """
    server = with_server("[[machine]]\nname = 'box'\ncpus = 64.0\nmemory_gib = 256.0\n").start()
    cases = {1: [], 2: []}
    peers = []
    try:
        server.boto("s3").create_bucket(Bucket="yard")
        environment = podman_environment(server.data)
        make_image(environment)
        sagemaker, logs = server.boto("sagemaker"), server.boto("logs")
        for number in progress.rounds(range(START_ROUNDS)):
            for hosts in (1, 2):
                trainyard_server.wait_for(
                    lambda: not os.listdir(os.path.join(server.data, "attempts")),
                    "the last job to be gone",
                )
                name = f"start-{hosts}-{number}"
                sagemaker.create_training_job(**jobs.request(name, "date +%s.%N", hosts=hosts))
                accepted = time.time()
                jobs.wait_until(sagemaker, name)
                began = [
                    float(line)
                    for line in jobs.log_lines(logs, name)
                    if re.fullmatch(r"\d+\.\d+", line)
                ]
                assert len(began) == hosts, (name, began)
                cases[hosts].append((max(began) - accepted) * 1000)
            trainyard_server.wait_for(
                lambda: not os.listdir(os.path.join(server.data, "attempts")),
                "the last job to be gone",
            )
            peers.append(podman_start_milliseconds(environment))
    finally:
        server.clean()
    return [
        row(
            "start",
            f"accepted -> user process, {hosts} host{'s' if hosts > 1 else ''}, runtime, no"
            " channel",
            "ms",
            measured,
            peers,
            "podman run --network=bridge",
            "p50 < 100 ms and ratio <= 0.5",
            lambda ours, peer: ours < 100 and ours <= 0.5 * peer,
        )
        for hosts, measured in cases.items()
    ]


def began_at(logs, name):
    """When a job's processes began, by the machine's uptime, which each printed first."""
    return max(
        float(line.split()[0])
        for line in jobs.log_lines(logs, name)
        if re.fullmatch(r"[0-9.]+ [0-9.]+", line)
    )


def start_up():
    """Accepted -> user code, by where the code comes from: the table of docs/operating."""
    server = with_server("[[machine]]\nname = 'box'\ncpus = 64.0\nmemory_gib = 256.0\n")
    names = ("a runtime", "an image, warm", START_UP_COLD, "a warm pool")
    ours, peers, registry = {name: [] for name in names}, {name: [] for name in names}, None
    try:
        os.makedirs(server.data, exist_ok=True)
        directory = tempfile.mkdtemp(prefix="trainyard-bench-", dir=os.path.join(ROOT, "build"))
        layout, registry = oci.Layout(os.path.join(directory, "layout")), oci.Registry(directory)
        for number in range(START_UP_ROUNDS):
            layout.image(
                f"cold{number}",
                [oci.base(), *(layer_of(f"{number}-{each}", 8) for each in range(8))],
            )
            registry.push(layout, f"cold{number}", "bench/start")
        server.start()
        server.boto("s3").create_bucket(Bucket="yard")
        environment = podman_environment(directory)
        sagemaker, logs = server.boto("sagemaker"), server.boto("logs")

        def measure(case, name, **request):
            trainyard_server.wait_for(
                lambda: not os.listdir(os.path.join(server.data, "attempts")),
                "the last job to be gone",
            )
            sagemaker.create_training_job(**jobs.request(name, "cat /proc/uptime", **request))
            accepted = uptime()
            jobs.wait_until(sagemaker, name)
            ours[case].append((began_at(logs, name) - accepted) * 1000)

        def podman_run(case, image, *more):
            asked = uptime()
            began = float(
                podman(
                    environment,
                    "run",
                    "--rm",
                    "--network=bridge",
                    *more,
                    image,
                    "sh",
                    "-c",
                    "cat /proc/uptime",
                ).split()[0]
            )
            peers[case].append((began - asked) * 1000)

        for number in progress.rounds(range(START_UP_ROUNDS)):
            image = f"{registry.host}/bench/start:cold{number}"
            measure("a runtime", f"runtime-{number}")
            measure(START_UP_COLD, f"cold-{number}", image=image)
            measure("an image, warm", f"warm-{number}", image=image)
            podman_run(START_UP_COLD, image, "--tls-verify=false")
            podman_run("an image, warm", image)
            pool = {"ResourceConfig": {"KeepAlivePeriodInSeconds": 60}}
            trainyard_server.wait_for(
                lambda: not os.listdir(os.path.join(server.data, "attempts")),
                "the last job to be gone",
            )
            sagemaker.create_training_job(
                **jobs.request(f"pool-{number}", "true", image=image, **pool)
            )
            jobs.wait_until(sagemaker, f"pool-{number}")
            measure("a warm pool", f"pooled-{number}", image=image)
    finally:
        if registry:
            registry.stop()
            shutil.rmtree(directory)
        server.clean()
    return [
        row(
            "start up",
            case,
            "ms",
            ours[case],
            peers[case] or None,
            "podman run --network=bridge" if peers[case] else None,
            "shown",
            lambda ours, peer: True,
        )
        for case in names
    ]


def logs():
    """A flood of log lines with forty metric regexes on, until the last one is durable,
    beside podman's log file without any."""
    server = with_server("[[machine]]\nname = 'box'\ncpus = 64.0\nmemory_gib = 256.0\n").start()
    flood = f"yes '{FLOOD_LINE}' | head -c {FLOOD_MEGABYTES}000000"
    metrics = [
        {"Name": f"metric{number}", "Regex": f"metric_{number}=([0-9.e+-]+)"}
        for number in range(40)
    ]
    ours, peers, dropped = [], [], 0
    try:
        server.boto("s3").create_bucket(Bucket="yard")
        environment = podman_environment(server.data)
        make_image(environment)
        sagemaker, events = server.boto("sagemaker"), server.boto("logs")
        for number in progress.rounds(range(FLOOD_ROUNDS)):
            name = f"flood-{number}"
            request = jobs.request(name, "date +%s.%N; " + flood)
            request["AlgorithmSpecification"]["MetricDefinitions"] = metrics
            sagemaker.create_training_job(**request)
            jobs.wait_until(sagemaker, name, seconds_max=300)
            where = {"logGroupName": "/aws/sagemaker/TrainingJobs"}
            stream = events.describe_log_streams(**where, logStreamNamePrefix=f"{name}/")[
                "logStreams"
            ][0]
            first = events.get_log_events(
                **where, logStreamName=stream["logStreamName"], startFromHead=True, limit=1
            )["events"][0]
            ours.append(
                FLOOD_MEGABYTES / (stream["lastIngestionTime"] / 1000 - float(first["message"]))
            )
            dropped += len(
                events.filter_log_events(
                    **where, logStreamNamePrefix=f"{name}/", filterPattern='"were dropped"'
                )["events"]
            )
            ended, began = podman_script(
                environment,
                f"""c=$(podman run -d --log-driver=k8s-file {IMAGE} sh -c "cat /proc/uptime; {flood}")
                podman wait $c >/dev/null; cut -d' ' -f1 /proc/uptime; head -n 1 $(podman inspect --format={{{{.HostConfig.LogConfig.Path}}}} $c) | cut -d' ' -f4
                podman rm $c >/dev/null""",
            ).split()
            peers.append(FLOOD_MEGABYTES / (float(ended) - float(began)))
    finally:
        server.clean()
    return [
        row(
            "logs",
            "lines of 100 bytes from one process, 40 regexes, none dropped",
            "MB/s",
            ours,
            peers,
            "podman run, k8s-file, no regexes",
            ">= 100 MB/s",
            lambda ours, peer: ours >= 100 and dropped == 0,
        )
    ]


def back_to_back():
    """The same, but each start is asked for as soon as the job before is seen to be Completed: what
    that one leaves is being removed meanwhile. `podman run --rm` after `podman run --rm` is the
    peer."""
    server = with_server("[[machine]]\nname = 'box'\ncpus = 64.0\nmemory_gib = 256.0\n").start()
    ours, peers = [], []
    try:
        server.boto("s3").create_bucket(Bucket="yard")
        environment = podman_environment(server.data)
        make_image(environment)
        sagemaker, logs = server.boto("sagemaker"), server.boto("logs")
        for block in range(BACK_TO_BACK_BLOCKS):
            for number in range(BACK_TO_BACK_JOBS):
                name = f"next-{block}-{number}"
                sagemaker.create_training_job(**jobs.request(name, "date +%s.%N", hosts=2))
                accepted = time.time()
                jobs.wait_until(sagemaker, name)
                began = [
                    float(line)
                    for line in jobs.log_lines(logs, name)
                    if re.fullmatch(r"\d+\.\d+", line)
                ]
                assert len(began) == 2, (name, began)
                if number:  # the first follows podman
                    ours.append((max(began) - accepted) * 1000)
            for _ in range(BACK_TO_BACK_JOBS - 1):
                peers.append(podman_start_milliseconds(environment))
    finally:
        server.clean()
    return [
        row(
            "back to back",
            "accepted -> user process, 2 hosts, right after the last job",
            "ms",
            ours,
            peers,
            "podman run --rm --network=bridge",
            "p50 < 100 ms and ratio <= 0.5",
            lambda ours, peer: ours < 100 and ours <= 0.5 * peer,
        )
    ]


def idle():
    """What a server that does nothing holds in memory."""
    samples = []
    for _ in range(3):
        server = with_server().start()
        try:
            server.boto("sts").get_caller_identity()
            server.boto("sagemaker").list_training_jobs()
            time.sleep(1)
            with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as file:
                samples.append(int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1]) / 1024)
        finally:
            server.clean()
    return [
        row(
            "idle",
            "resident memory after first requests",
            "MiB",
            samples,
            None,
            None,
            "< 40 MiB",
            lambda ours, _: ours < 40,
        )
    ]


def layer_of(number, mebibytes):
    """Files of many sizes, which pack to about half, as programs and libraries do."""
    values = random.Random(number)
    members, left = [oci.directory(f"layer{number}")], mebibytes << 20
    while left > 0:
        size = min(left, values.choice((4 << 10, 32 << 10, 256 << 10, 2 << 20)))
        half = size // 2
        members.append(
            oci.file(
                f"layer{number}/{len(members)}",
                values.randbytes(half) + b"the same again " * (half // 15 + 1),
            )
        )
        left -= size
    return members


def image():
    """A cold image in many layers, from a registry on this machine to ready to run,
    beside `podman pull`."""
    directory = tempfile.mkdtemp(prefix="trainyard-bench-", dir=os.path.join(ROOT, "build"))
    registry = None
    try:
        layout = oci.Layout(os.path.join(directory, "layout"))
        layout.image(
            "cold",
            (
                layer_of(number, COLD_IMAGE_MIB // COLD_IMAGE_LAYERS)
                for number in range(COLD_IMAGE_LAYERS)
            ),
        )
        os.mkdir(os.path.join(directory, "registry"))
        registry = oci.Registry(os.path.join(directory, "registry"))
        name = registry.push(layout, "cold", "bench/cold")
        environment = podman_environment(directory)
        ours, peers = [], []
        for _ in progress.rounds(range(COLD_ROUNDS)):
            data, store = os.path.join(directory, "data"), os.path.join(directory, "store")
            state = tempfile.mkdtemp(prefix="pod-")  # podman takes a short name only
            began = time.monotonic()
            subprocess.run(
                [os.path.join(BIN, "trainyard"), "warm", name, "--data", data],
                check=True,
                capture_output=True,
            )
            ours.append(time.monotonic() - began)
            began = time.monotonic()
            podman(
                environment,
                "--root",
                store,
                "--runroot",
                state,
                "pull",
                "-q",
                "--tls-verify=false",
                name,
            )
            peers.append(time.monotonic() - began)
            for old in (data, store, state):
                subprocess.run(["umount", "-q", os.path.join(old, "overlay")], check=False)
                shutil.rmtree(old)
    finally:
        if registry:
            registry.stop()
        shutil.rmtree(directory)
    return [
        row(
            "image",
            f"cold image of {COLD_IMAGE_MIB} MiB in {COLD_IMAGE_LAYERS} layers, registry on this"
            " machine",
            "s",
            ours,
            peers,
            "podman pull",
            "no slower",
            lambda ours, peer: ours <= peer,
        )
    ]


BENCHES = {
    one.__name__: one
    for one in (
        collectives,
        links,
        overlap,
        torch,
        projection,
        ledger,
        policy,
        describe,
        attack,
        create,
        submit,
        array,
        schedule,
        start,
        start_up,
        back_to_back,
        logs,
        idle,
        image,
    )
}

# -- showing and keeping
# ----------------------------------------------------------------------------


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*:\s*(.+)", file.read())
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(re.search(r"MemTotal:\s+(\d+)", file.read())[1]) / 1024 / 1024
    return {
        "cpu": model[1].strip() if model else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory, 1),
        "kernel": platform.release().split("-")[0],
    }


def paint(code, text):
    return f"\033[{code}m{text}\033[0m" if sys.stdout.isatty() else text


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def show(rows):
    for one in rows:
        print(f"  {one['case']:<58} {number(one['ours'][1]):>10} {one['unit']:<11}", end="")
        if one["peer"]:
            print(
                f" beside {number(one['peer'][1]):>10}  ({one['peer_name']})  ratio"
                f" {paint('1', str(one['ratio']))}",
                end="",
            )
        print(
            f"  target: {one['target']} "
            f" {paint('32', 'met') if one['met'] else paint('31', 'missed')}"
        )


def main(names):
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.exit(f"no bench named {', '.join(unknown)}; there are: {', '.join(BENCHES)}")
    os.makedirs(RESULTS, exist_ok=True)
    missed = 0
    for name in names or BENCHES:
        print(f"{paint('1', name)}: {BENCHES[name].__doc__.splitlines()[0]}", flush=True)
        rows = BENCHES[name]()
        show(rows)
        missed += sum(not one["met"] for one in rows)
        with open(os.path.join(RESULTS, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(
                {"date": datetime.date.today().isoformat(), "machine": machine(), "rows": rows},
                file,
                indent=1,
            )
            file.write("\n")
        if any(one["peer"] for one in rows):
            plot.write(rows, os.path.join(RESULTS, name + ".svg"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
