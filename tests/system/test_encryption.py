"""Tests EnableInterContainerTrafficEncryption: traffic between the hosts of a job, of any program,
cannot be read on the wire."""

import os
import pathlib
import socket
import subprocess
import time
from collections.abc import Callable, Iterable

import botocore.exceptions
import pytest

from tests import jobs, leftovers
from tests.trainyard_server import Server, wait_for

MARK = b"in-the-clear-these-words-are-read"
# The first host sends the words to the second over a plain connection, repeatedly,
# and lists the addresses of the network.
TALK = r"""import os, socket, sys, time
if os.uname().nodename == "algo-2":
    server = socket.create_server(("0.0.0.0", 9000))
    plain = socket.create_server(("0.0.0.0", 9001))
    peer, _ = server.accept()
    while data := peer.recv(4096):
        peer.sendall(data)
    sys.exit()
for _ in range(600):
    try:
        peer = socket.create_connection(("algo-2", 9000), 5)
        break
    except OSError:
        time.sleep(0.1)
under = socket.inet_ntoa((int.from_bytes(socket.inet_aton(socket.gethostbyname("algo-2"))) - 8).to_bytes(4)) if sys.version_info >= (3, 11) else ""
try:
    socket.create_connection((under, 9001), 2).close()
    print("reached " + under)
except OSError as error:
    print("no listener at " + under)
open("/proc/net/dev").read().count("wire0:") and print("wire0")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
    way.connect(("192.0.2.1", 9))
    print("out by", "the tunnel" if way.getsockname()[0] == socket.gethostbyname("algo-1") else "the wire")
print("talking", flush=True)
until = time.monotonic() + 120
while time.monotonic() < until:
    peer.sendall(b"WORDS")
    assert peer.recv(4096) == b"WORDS"
    time.sleep(0.05)
"""


def talk() -> str:
    return TALK.replace("WORDS", MARK.decode())


def on_the_wire(links: Iterable[str], frames_min: int = 40, seconds_max: int = 30) -> list[bytes]:
    """Captures frames on the hosts' interfaces on this machine."""
    sockets = []
    for link in links:
        sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        sniffer.bind((link, 0))
        sniffer.settimeout(0.2)
        sockets.append(sniffer)
    frames, until = [], time.monotonic() + seconds_max
    while len(frames) < frames_min and time.monotonic() < until:
        for sniffer in sockets:
            try:
                frames.append(sniffer.recv(65536))
            except TimeoutError:
                pass
    for sniffer in sockets:
        sniffer.close()
    return frames


def links() -> set[str]:
    return {name for name in os.listdir("/sys/class/net") if name.startswith("tv")}


@pytest.mark.parametrize("encrypted", (False, True))
def test_traffic_of_hosts_is_unreadable(start: Callable[..., Server], encrypted: bool) -> None:
    server = start(
        "[[machine]]\nname = 'box'\ncpus = 8.0\nmemory_gib = 32.0\n[jobs]\nstop_grace_seconds = 1\n"
    )
    s3, sagemaker = server.boto("s3"), server.boto("sagemaker")
    s3.create_bucket(Bucket="yard")
    s3.put_object(Bucket="yard", Key="talk/talk.py", Body=talk().encode())
    before, links_before = leftovers.picture(server.data), links()
    sagemaker.create_training_job(
        **jobs.request(
            "talk",
            "exec python3 /opt/ml/input/data/talk/talk.py",
            hosts=2,
            channels={"talk": ("s3://yard/talk/", "FullyReplicated")},
            EnableInterContainerTrafficEncryption=encrypted,
        )
    )
    lines = wait_for(
        lambda: (
            (
                found := [
                    line
                    for line in jobs.log_lines(server.boto("logs"), "talk", 1)
                    if not line.startswith("trainyard: ")
                ]
            )[-1:]
            == ["talking"]
            and found
        ),
        "the hosts to talk",
    )
    frames = on_the_wire(links() - links_before)
    assert len(frames) >= 40, "they say a word twenty times a second"
    read = sum(MARK in frame for frame in frames)
    assert (
        sagemaker.describe_training_job(TrainingJobName="talk")[
            "EnableInterContainerTrafficEncryption"
        ]
        == encrypted
    )
    if encrypted:
        assert read == 0
        datagrams = [
            frame
            for frame in frames
            if frame[12:14] == b"\x08\x00"
            and frame[23] == 17
            and frame[34:38] == (51820).to_bytes(2, "big") * 2
        ]
        assert len(datagrams) >= 20, "WireGuard's, both ways"
        assert lines[0].startswith("no listener at 10.") and lines[1:] == [
            "wire0",
            "out by the wire",
            "talking",
        ]
    else:
        assert read >= 10
        assert lines[1:] == ["out by the tunnel", "talking"], "eth0 has egress, as ever"
    sagemaker.stop_training_job(TrainingJobName="talk")
    jobs.wait_until(sagemaker, "talk")
    wait_for(
        lambda: not leftovers.left(before, leftovers.picture(server.data)), "nothing to be left"
    )


def test_a_killed_agent_leaves_no_tunnel(start: Callable[..., Server]) -> None:
    server = start(
        "[[machine]]\nname = 'box'\ncpus = 8.0\nmemory_gib = 32.0\n[jobs]\nstop_grace_seconds = 1\n"
    )
    server.boto("s3").create_bucket(Bucket="yard")
    sagemaker = server.boto("sagemaker")
    before = leftovers.picture(server.data)
    sagemaker.create_training_job(
        **jobs.request("killed", "sleep 1000", hosts=2, EnableInterContainerTrafficEncryption=True)
    )
    jobs.wait_until(sagemaker, "killed", ("Training",))

    def tunnels() -> list[int]:
        found = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                with (
                    open(f"/proc/{process}/cmdline", "rb") as command,
                    open(f"/proc/{process}/environ", "rb") as environment,
                ):
                    if (
                        command.read().startswith(b"wireguard-go\0")
                        and server.data.encode() in environment.read()
                    ):
                        found.append(int(process))
            except OSError:
                continue
        return found

    assert len(tunnels()) == 2
    agents = [
        process
        for process in subprocess.run(
            ["pgrep", "-f", f"trainyard-agent --order {server.data}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
    ]
    assert len(agents) == 2
    os.kill(int(agents[0]), 9)
    assert jobs.wait_until(sagemaker, "killed")["TrainingJobStatus"] == "Failed"
    wait_for(lambda: not tunnels(), "the tunnels to end")
    wait_for(
        lambda: not leftovers.left(before, leftovers.picture(server.data)), "nothing to be left"
    )


def test_a_machine_without_wireguard_is_reported(
    start: Callable[..., Server], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    for name in os.listdir("/usr/bin"):
        if name != "wireguard-go":
            (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/sbin:/sbin")
    server = start(
        "[[machine]]\nname = 'box'\ncpus = 8.0\nmemory_gib = 32.0\n[jobs]\nstop_grace_seconds = 1\n"
    )
    server.boto("s3").create_bucket(Bucket="yard")
    with pytest.raises(botocore.exceptions.ClientError, match="install the package wireguard-go"):
        server.boto("sagemaker").create_training_job(
            **jobs.request("refused", "true", hosts=2, EnableInterContainerTrafficEncryption=True)
        )
