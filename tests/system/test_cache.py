"""Tests `trainyard cache`, and what the machine's cache guarantees to running jobs."""

import fcntl
import hashlib
import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests import trainyard_server
from tests.mounted_channels import (
    BLOCK,
    CONFIG,
    HASHES,
    NEEDS_MOUNTS,
    WAIT,
    channel,
    end_of,
    gets,
    go,
    run,
    start_until_ready,
)
from tests.terminals import Terminal
from tests.trainyard_server import Server, wait_for

pytestmark = NEEDS_MOUNTS

F_OFD_SETLK = 37  # Linux's constant, which the module fcntl lacks
TWO = b"2" * (2 * BLOCK - 9)  # an object of two blocks


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start(CONFIG, bucket="yard")


@pytest.fixture
def small(start: Callable[..., Server], tmp_path: pathlib.Path) -> Iterator[Server]:
    """Starts a server with a cache of 12 MiB, of which 10.8 can be pinned: two blocks."""
    blocks = tmp_path / "data" / "images.blocks"
    blocks.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=120m", "cache", blocks], check=True)
    one = Server(tmp_path / "data", CONFIG)
    try:
        one.start()
        one.boto("s3").create_bucket(Bucket="yard")
        yield one
    finally:
        subprocess.run(["umount", "-l", blocks], check=True)
        one.clean()


def put(server: Server, *keys: str, body: bytes = TWO) -> None:
    for key in keys:
        server.boto("s3").put_object(Bucket="yard", Key=key, Body=body)


def words(server: Server, *arguments: str) -> list[str]:
    return [trainyard_server.PROGRAM, "cache", *arguments, "--data", server.data]


def cache(server: Server, *arguments: str, code: int = 0, user: int | None = None) -> str:
    done = subprocess.run(
        words(server, *arguments),
        capture_output=True,
        text=True,
        timeout=trainyard_server.WAIT_SECONDS_MAX,
        stdin=subprocess.DEVNULL,
        user=user,
    )
    assert done.returncode == code, (arguments, done.stdout, done.stderr)
    return done.stdout if code == 0 else " ".join(done.stderr.split())


def listed(server: Server, *arguments: str) -> dict:
    return json.loads(cache(server, "ls", *arguments, "--json"))


def files(server: Server) -> int:
    """Counts the whole blocks: a file that is still written has another name."""
    return sum(1 for _ in pathlib.Path(server.data, "images.blocks").glob("??/[0-9a-f]*"))


def test_a_job_reads_what_was_warmed(server: Server) -> None:
    put(server, "warm/a", "warm/b")
    assert "2 objects, 16.0 MiB; 4 blocks fetched, 0 already cached" in cache(
        server, "warm", "s3://yard/warm/"
    )
    assert "0 blocks fetched, 4 already cached" in cache(server, "warm", "s3://yard/warm/")
    before = gets(server)
    run(server, "warmed", HASHES, channel("s3://yard/warm/"))
    assert gets(server) - before == 1, "its script is an object as well"
    (entry,) = listed(server, "s3://yard/warm")["Entries"]
    assert (entry["Name"], entry["Objects"], entry["Blocks"]) == ("warm/", 2, 4)
    assert cache(server, "warm", "s3://yard/none/", code=1) == (
        "trainyard: no objects under s3://yard/none/"
    )


def test_pins_outlast_jobs_and_are_removed_by_name(server: Server) -> None:
    put(server, "pinned/a")
    cache(server, "pin", "s3://yard/pinned/", code=1)  # nothing of it is cached
    assert "; pinned" in cache(server, "warm", "s3://yard/pinned/", "--pin")
    (pin,) = listed(server)["Pins"]
    assert (pin["Name"], pin["Running"]) == ("s3://yard/pinned/", False)
    assert pin["Bytes"] >= len(TWO)
    cache(server, "pin", "s3://yard/pinned/", "--remove")
    assert listed(server)["Pins"] == []
    cache(server, "pin", "s3://yard/pinned/", "--remove", code=1)
    assert "2 blocks pinned" in cache(server, "pin", "s3://yard/pinned/")
    assert "2 blocks removed" in cache(server, "drop", "s3://yard/pinned/")
    assert listed(server)["Pins"] == []


def test_blocks_of_a_running_job_stay(server: Server) -> None:
    put(server, "held/a")
    data = channel("s3://yard/held/")
    run(server, "holder-1", HASHES, data)
    agent = start_until_ready(server, "holder-2", WAIT + HASHES, data)
    (pin,) = listed(server)["Pins"]
    assert (pin["Name"], pin["Running"]) == ("job holder-2, channel train", True)
    assert "; kept 2 blocks of running jobs" in cache(server, "drop", "--all")
    before = gets(server)
    go(server, agent)
    end_of(server, "holder-2")
    assert gets(server) == before
    wait_for(lambda: listed(server)["Pins"] == [], "the end of the pin")
    assert "2 blocks removed" in cache(server, "drop", "--all")


def test_the_pin_of_a_killed_agent_ends(server: Server) -> None:
    put(server, "killed/a")
    agent = start_until_ready(server, "killed", WAIT, channel("s3://yard/killed/"))
    assert len(listed(server)["Pins"]) == 1
    os.kill(agent, signal.SIGKILL)
    wait_for(lambda: listed(server)["Pins"] == [], "the end of the pin")
    end_of(server, "killed", "Failed")


def test_a_small_cache_keeps_what_running_jobs_read(small: Server) -> None:
    put(small, "first/a", "other/a", "other/b", "other/c")
    run(small, "fills", HASHES, channel("s3://yard/first/"))
    agent = start_until_ready(small, "reads", WAIT + HASHES, channel("s3://yard/first/"))
    # Blocks that do not fit next to it are read as well, and are not kept.
    lines = run(small, "passes", HASHES, channel("s3://yard/other/"))
    assert len(json.loads(lines[-1])) == 3
    (line,) = [line for line in lines if "the machine's cache keeps" in line]
    assert re.search(
        "keeps 0 B of 24.0 MiB while this job runs.*other jobs have pinned 8.0 MiB", line
    ), line
    refused = cache(small, "warm", "s3://yard/other/", code=1)
    assert "the cache is too small: pinning needs 24.0 MiB" in refused
    before = gets(small)
    go(small, agent)
    end_of(small, "reads")
    assert gets(small) == before, "its blocks were still there"
    assert "the cache is too small" in cache(small, "warm", "s3://yard/", code=1)


def test_warming_a_full_disk_reports_it(small: Server) -> None:
    blocks = pathlib.Path(small.data, "images.blocks")
    put(small, "full/a")
    with open(blocks / "filler", "wb") as filler:
        os.posix_fallocate(filler.fileno(), 0, 110 << 20)
    refused = cache(small, "warm", "s3://yard/full/", code=1)
    assert f"the disk of {blocks} is nearly full: " in refused
    assert "6.0 MiB must stay free; delete files, or use `trainyard cache drop`" in refused
    (blocks / "filler").unlink()
    assert "2 blocks fetched" in cache(small, "warm", "s3://yard/full/")


def test_other_users_are_refused(server: Server) -> None:
    for action in (
        ["ls"],
        ["warm", "s3://yard/warm/"],
        ["pin", "s3://yard/warm/"],
        ["drop", "--all"],
    ):
        assert "ermission denied" in cache(server, *action, code=1, user=65534)


def test_wrong_arguments_are_explained(server: Server) -> None:
    assert "use `trainyard cache ls`, warm, pin or drop" in cache(server, "lst", code=1)
    assert "needs s3://BUCKET/PREFIX" in cache(server, "warm", code=1)
    assert "needs s3://BUCKET/PREFIX, or --all" in cache(server, "drop", code=1)
    assert "needs s3://BUCKET/PREFIX, or --all" in cache(
        server, "drop", "s3://yard/", "--all", code=1
    )


@pytest.mark.parametrize("columns", (60, 80, 120, 200))
def test_the_list_fits_the_terminal(server: Server, columns: int) -> None:
    long = "a-directory-of-keys-with-a-name-that-is-longer-than-a-line-of-a-terminal/" * 2
    put(server, f"shown/{long}\u8a13\u7df4", "shown/b", body=b"small")
    cache(server, "warm", "s3://yard/shown/", "--pin")
    for uri in ([], ["s3://yard/"], ["s3://yard/shown/"]):
        with Terminal(server, *words(server, "ls", *uri)[1:], columns=columns) as terminal:
            assert terminal.ends() == 0, terminal.shown
            page = re.sub("\033\\[[0-9;]*m", "", terminal.shown).replace("\r\n", "\n")
        for line in page.splitlines():
            assert len(line) <= columns, (columns, line)
        assert "PINNED BY" in page and " used, " in page


def lock_a_block(server: Server, key: str, body: bytes) -> int:
    """Holds the lock under which the object's first block is fetched (docs/formats/cache.md)."""
    record = json.loads(pathlib.Path(server.data, "server.json").read_text())
    parts = (record["agents_endpoint"], "yard", key, hashlib.md5(body).hexdigest())
    identity = "".join(f"{len(part)}:{part}" for part in parts) + "0"
    offset = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], "big") >> 2
    blocks = os.path.join(server.data, "images.blocks")
    os.makedirs(blocks, mode=0o700, exist_ok=True)  # the first agent has not made it yet
    path = os.path.join(blocks, "fetches")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
    fcntl.fcntl(descriptor, F_OFD_SETLK, lock)
    return descriptor


def test_a_warm_shows_a_bar_and_is_interrupted_and_repeated(server: Server) -> None:
    body = random.Random(3).randbytes(3 * BLOCK)
    put(server, "bar/a", body=body)
    lock = lock_a_block(server, "bar/a", body)
    command = words(server, "warm", "s3://yard/bar/")[1:]
    with Terminal(server, *command, columns=80, environment={"LC_ALL": "C.UTF-8"}) as terminal:
        terminal.until(r"66%.*8\.0 MiB of 12\.0 MiB")
        terminal.type("\x03")
        assert terminal.ends() == 130, terminal.shown
        assert "interrupted after 8.0 MiB" in terminal.shown
        assert terminal.is_as_before()
    os.close(lock)
    assert "1 block fetched, 2 already cached" in cache(server, "warm", "s3://yard/bar/")


def test_a_killed_warm_leaves_whole_blocks_and_no_pin(server: Server) -> None:
    body = random.Random(4).randbytes(3 * BLOCK)
    put(server, "kill/a", body=body)
    lock = lock_a_block(server, "kill/a", body)
    before = files(server)
    with subprocess.Popen(
        words(server, "warm", "s3://yard/kill/", "--pin"), stderr=subprocess.DEVNULL
    ) as warming:
        wait_for(lambda: files(server) == before + 2, "two of three blocks")
        names = [pin["Name"] for pin in listed(server)["Pins"] if pin["Running"]]
        assert names == ["trainyard cache warm s3://yard/kill/"]
        warming.kill()
    os.close(lock)
    assert not [pin for pin in listed(server)["Pins"] if pin["Name"].endswith("/kill/")]
    assert "1 block fetched, 2 already cached" in cache(server, "warm", "s3://yard/kill/")
    lines = run(server, "after-kill", HASHES, channel("s3://yard/kill/"))
    assert json.loads(lines[-1]) == {"a": hashlib.sha256(body).hexdigest()}


def test_an_unknown_action_is_named_without_a_server(tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [trainyard_server.PROGRAM, "cache", "wram", "--data", str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "unknown action 'wram': use `trainyard cache ls`, warm, pin or drop" in done.stderr
