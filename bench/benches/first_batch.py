"""Measures the time to the first batch of a data set behind an endpoint with a limited rate:
mounted, next to copied."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import threading
import time

from bench import progress
from bench.benches.start_up import began_at
from bench.loads import with_server
from bench.podman import uptime
from bench.rows import Row, row
from tests import jobs
from tests.trainyard_server import PROGRAM, Server

ROUNDS = int(os.environ.get("TRAINYARD_BENCH_FIRST_BATCH_ROUNDS", "2"))
# Models a data set of 50 GB in shards of 100 MB behind a link of 4 Gb/s. Size and rate are a
# thirteenth, so a copy takes as long as a copy of the whole set.
SHARDS = int(os.environ.get("TRAINYARD_BENCH_FIRST_BATCH_SHARDS", "40"))
SHARD_BYTES = 100_000_000
BYTES_PER_SECOND = 40_000_000
BATCH_BYTES = 32 * 110_000  # 32 pictures of ImageNet's size
PIECE_BYTES = 64 << 10
STORE = "[[access_key]]\nid = 'AKIASTORE'\nsecret = 'the-secret-of-the-store'\n"
SCRIPT = f"""
import os
folder = '/opt/ml/input/data/train'
first = os.path.join(folder, sorted(os.listdir(folder))[0])
assert len(open(first, 'rb').read({BATCH_BYTES})) == {BATCH_BYTES}
print(open('/proc/uptime').read().strip())
"""


class LimitedEndpoint:
    """Forwards connections to an address, and limits the rate of the bytes from it, over all
    connections together."""

    def __init__(self, address: str, bytes_per_second: int) -> None:
        host, _, port = address.rpartition(":")
        self.target = (host, int(port))
        self.rate = bytes_per_second
        self.lock = threading.Lock()
        self.free_at = 0.0  # the time at which the link has sent all bytes so far
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.target)
            for source, sink, limited in ((client, server, False), (server, client, True)):
                threading.Thread(
                    target=self.forward, args=(source, sink, limited), daemon=True
                ).start()

    def forward(self, source: socket.socket, sink: socket.socket, limited: bool) -> None:
        try:
            while piece := source.recv(PIECE_BYTES):
                if limited:
                    self.wait_for_link(len(piece))
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            source.close()
            sink.close()

    def wait_for_link(self, size: int) -> None:
        with self.lock:
            self.free_at = max(self.free_at, time.monotonic()) + size / self.rate
            sent_at = self.free_at
        time.sleep(max(0.0, sent_at - time.monotonic()))

    def stop(self) -> None:
        self.listener.close()


def fill(store: Server) -> None:
    s3 = store.boto("s3")
    s3.create_bucket(Bucket="data")
    content = random.Random(50).randbytes(SHARD_BYTES)
    for shard in range(SHARDS):
        s3.put_object(Bucket="data", Key=f"set/{shard:05}", Body=content)


def first_batch() -> list[Row]:
    """Measures from acceptance until a batch of the data set is in the script's memory."""
    store = with_server(STORE)
    clusters: dict[str, Server] = {}
    times: dict[str, list[float]] = {"mount": [], "copy": []}
    endpoint = None
    try:
        store.start()
        fill(store)
        endpoint = LimitedEndpoint(store.listen, BYTES_PER_SECOND)
        objects = (
            f"[objects]\nendpoint = 'http://{endpoint.address}'\naccess_key_id = 'AKIASTORE'\n"
            "secret_access_key = 'the-secret-of-the-store'\n"
        )
        for mode in times:
            clusters[mode] = with_server(f"{objects}[jobs]\nfile_mode = '{mode}'\n").start()
        for number in progress.rounds(range(ROUNDS)):
            for mode, cluster in clusters.items():
                times[mode].append(measure(cluster, f"{mode}-{number}"))
    finally:
        for cluster in clusters.values():
            cluster.clean()
        if endpoint:
            endpoint.stop()
        store.clean()
    return [
        row(
            "first batch",
            f"first {BATCH_BYTES / 1e6:.1f} MB of {SHARDS * SHARD_BYTES / 1e9:.0f} GB in File mode,"
            f" {BYTES_PER_SECOND / 1e6:.0f} MB/s",
            "s",
            times["mount"],
            times["copy"],
            "file_mode = 'copy'",
            "at most 0.01",
            lambda ours, peer: ours <= peer / 100,
        )
    ]


def measure(cluster: Server, name: str) -> float:
    """Runs a job on a machine without cached data; returns the time to its first batch."""
    subprocess.run(
        [PROGRAM, "cache", "drop", "--all", "--data", cluster.data], check=True, capture_output=True
    )
    request = jobs.request(name, 'exec python3 -c "$READ_BATCH"')
    request["Environment"] = {"READ_BATCH": SCRIPT}  # an argument has at most 256 characters
    request["ResourceConfig"]["VolumeSizeInGB"] = 2 + SHARDS * SHARD_BYTES // 10**9
    request["StoppingCondition"]["MaxRuntimeInSeconds"] = 3600
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://data/set/"}
    request["InputDataConfig"] = [
        {"ChannelName": "train", "DataSource": {"S3DataSource": source}},
    ]
    sagemaker, logs = cluster.boto("sagemaker"), cluster.boto("logs")
    sagemaker.create_training_job(**request)
    accepted = uptime()
    jobs.wait_until(sagemaker, name, seconds_max=3600)
    return began_at(logs, name) - accepted
