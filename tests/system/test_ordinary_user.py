"""Tests a server of an ordinary user, in the user's own namespaces: it works like root's, or
reports what the machine does not permit."""

import glob
import os
import pathlib
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests import jobs, oci, trainyard_server
from tests.hostile import machine
from tests.ordinary_users import User
from tests.system import test_distributions, test_hostile, test_isolation
from tests.system.test_egress import HERE, THERE, outside  # noqa: F401, a fixture
from tests.trainyard_server import PROGRAM, Server, wait_for

BOX = "[[machine]]\nname = 'box'\ncpus = 8.0\nmemory_gib = 32.0\n[jobs]\nstop_grace_seconds = 3\n"
CONTROLLERS = ("cpu", "cpuacct", "memory", "pids", "freezer")


def made(name: str, with_ids: bool = True) -> Iterator[User]:
    user = User(f"{name}{os.getpid()}", with_ids)
    yield user
    user.remove()


@pytest.fixture(scope="module")
def user() -> Iterator[User]:
    yield from made("tyuser")


@pytest.fixture(scope="module")
def user_of_one_id() -> Iterator[User]:
    yield from made("tyone", with_ids=False)


@pytest.fixture(scope="module")
# which are removed after the servers
def start_as(
    tun: Callable[..., list[str]], user: User, user_of_one_id: User
) -> Iterator[Callable[..., Server]]:
    servers = []

    def start(user: User, name: str, config: str = BOX, before: Sequence[str] = ()) -> Server:
        server = trainyard_server.Server(
            user.directory(name), config, behind=[*before, *user.words()]
        )
        server.program = user.program()
        servers.append(server)
        return server.start()

    yield start
    for server in servers:
        server.clean()


def with_tun(path: str) -> list[str]:
    """Returns a command prefix that makes the file for network interfaces available to all users,
    or to root only."""
    return [
        "unshare",
        "--mount",
        "sh",
        "-c",
        f'mount --bind {path} /dev/net/tun && exec "$@"',
        "sh",
    ]


@pytest.fixture(scope="module")
def tun() -> Iterator[Callable[..., list[str]]]:
    """Returns with_tun() for a file with these permissions."""

    def make(mode: int) -> list[str]:
        path = f"/dev/trainyard-test-tun-{os.getpid()}-{mode:o}"
        if path in made_files:
            return with_tun(path)
        os.mknod(path, stat.S_IFCHR | mode, os.makedev(10, 200))
        os.chmod(path, mode)
        made_files.add(path)
        return with_tun(path)

    made_files = set()
    yield make
    for path in made_files:
        os.unlink(path)


@pytest.fixture(scope="module")
def server(user: User, start_as: Callable[..., Server], tun: Callable[..., list[str]]) -> Server:
    """Starts a server of a user without delegated cgroups, as on most machines; here without
    egress."""
    one = start_as(user, "plain", before=tun(0o600))
    one.boto("s3").create_bucket(Bucket="yard")
    return one


def run(server: Server, name: str, script: str, **more: Any) -> dict[str, Any]:
    server.boto("sagemaker").create_training_job(**jobs.request(name, script, **more))
    done = jobs.wait_until(server.boto("sagemaker"), name)
    assert done["TrainingJobStatus"] == "Completed", (
        done.get("FailureReason"),
        jobs.log_lines(server.boto("logs"), name),
    )
    return done


def said_by_job(server: Server, name: str, host: int | None = None) -> list[str]:
    return [
        line
        for line in jobs.log_lines(server.boto("logs"), name, host)
        if not line.startswith("trainyard: ")
    ]


def said_by_platform(server: Server, name: str) -> list[str]:
    return [
        line
        for line in jobs.log_lines(server.boto("logs"), name, 1)
        if line.startswith("trainyard: ")
    ]


def test_a_job_from_start_to_end(server: Server, user: User) -> None:
    s3 = server.boto("s3")
    s3.put_object(Bucket="yard", Key="data/numbers", Body=b"1 2 3\n")
    done = run(
        server,
        "one",
        "id -u; cat /opt/ml/input/data/train/numbers; hostname; touch /tmp/mine; chown 5:5"
        " /tmp/mine; stat -c %u /tmp/mine; curl -s -m 3 http://1.1.1.1 || echo unreached;"
        " echo weights >/opt/ml/model/weights",
        channels={"train": ("s3://yard/data/", "FullyReplicated")},
    )
    assert said_by_job(server, "one") == ["0", "1 2 3", "algo-1", "5", "unreached"]
    assert s3.head_object(Bucket="yard", Key="models/one/output/model.tar.gz")["ContentLength"] > 0
    assert done["BillableTimeInSeconds"] >= 0
    for path in ("ledger.db", "objects", "enclosure/lock"):
        assert os.stat(os.path.join(server.data, path)).st_uid == user.number, path


def test_missing_isolation_is_reported(server: Server) -> None:
    done = run(server, "withheld", "true")
    platform = "\n".join(said_by_platform(server, "withheld"))
    status = " ".join(each.get("StatusMessage", "") for each in done["SecondaryStatusTransitions"])
    for words in (
        "share is not enforced (cpus, memory)",
        "nothing outside: /dev/net/tun cannot be opened",
        "VolumeSizeInGB is not enforced",
    ):
        assert words in platform, platform
        assert words in status, status
    isolated = run(server, "isolated", "true", EnableNetworkIsolation=True)
    assert "nothing outside" not in str(isolated["SecondaryStatusTransitions"]), (
        "it requested nothing outside"
    )


# Starts waiting threads; prints how many the kernel permits.
CROWD = r"""python3 - <<'END'
import threading
threading.stack_size(65536)
end = threading.Event()
count = 0
try:
    while count < 6000:
        threading.Thread(target=end.wait, daemon=True).start()
        count += 1
except RuntimeError as fault:
    print("refused", fault, 3900 < count < 4100, flush=True)
end.set()
END
"""


def test_processes_are_limited_without_delegated_groups(server: Server) -> None:
    run(server, "crowd", CROWD)
    assert said_by_job(server, "crowd") == ["refused can't start new thread True"]


# Each host listens on a port that all jobs may use, and queries the other.
TALK = r"""python3 - <<'END'
import os, socket, time
me = socket.gethostname()
other = {"algo-1": "algo-2", "algo-2": "algo-1"}[me]
listening = socket.create_server(("", 22))
end = time.monotonic() + 60
while True:
    try:
        asking = socket.create_connection((other, 22), timeout=5)
        break
    except OSError:
        assert time.monotonic() < end
        time.sleep(0.05)
asking.sendall(me.encode())
heard, _ = listening.accept()
print("heard", heard.recv(100).decode(), flush=True)
END
"""


def test_hosts_reach_each_other_by_name(server: Server) -> None:
    run(server, "two", TALK, hosts=2)
    assert said_by_job(server, "two", 1) == ["heard algo-2"]
    assert said_by_job(server, "two", 2) == ["heard algo-1"]


def test_ranks_run_on_all_hosts(server: Server) -> None:
    test_distributions.test_mpi_on_two_hosts(server)


def test_hosts_run_sshd_of_their_own(
    user: User, start_as: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    test_isolation.test_hosts_reach_each_other_through_their_own_sshd(
        lambda config: start_as(user, "sshd", config), tmp_path
    )


def test_a_hostile_job_reaches_nothing(server: Server) -> None:
    server.boto("s3").create_bucket(Bucket="yard")
    test_hostile.begin_attacker(server, test_hostile.begin_probed_job(server))
    tried = test_hostile.lines_of(server, "hostile", "TRIED")
    server.boto("sagemaker").stop_training_job(TrainingJobName="victim")
    reached = {name for name, answer in tried.items() if "REACHED" in answer}
    # All jobs of an ordinary user's server have the user's ids: inside,
    # id 0 is the 0 of the user's namespaces.
    assert reached == {"root-of-machine", "neighbours-ids"}, {name: tried[name] for name in reached}
    assert len(tried) == len(machine.ATTACKS)


def test_an_image_keeps_its_users(server: Server, user: User) -> None:
    layout = oci.Layout(os.path.join(user.home, "layout"))
    layout.image(
        "v1",
        [
            oci.base()
            + [oci.directory("home"), oci.file("home/his", b"his\n", 0o600, uid=1234, gid=1234)]
        ],
        {"User": "1234:1234"},
    )
    script = (
        "stat -c %u:%g /home/his; cat /home/his; stat -c %u /opt/ml/model; echo m >/opt/ml/model/m;"
        " mkdir /tmp/x; echo done"
    )
    for name in ("image-1", "image-2"):
        server.boto("sagemaker").create_training_job(
            **jobs.request(name, script, image=f"oci:{layout.path}:v1")
        )
        done = jobs.wait_until(server.boto("sagemaker"), name)
        assert done["TrainingJobStatus"] == "Completed", (
            done.get("FailureReason"),
            jobs.log_lines(server.boto("logs"), name),
        )
        assert said_by_job(server, name) == ["1234:1234", "his", "1234", "done"]


def test_a_shell_into_a_running_host(server: Server) -> None:
    server.boto("sagemaker").create_training_job(**jobs.request("runs", "echo begun; sleep 1000"))
    wait_for(lambda: "begun" in said_by_job(server, "runs"), "the job to run")
    asked = subprocess.run(
        [
            PROGRAM,
            "shell",
            "runs",
            "algo-1",
            "--",
            "sh",
            "-c",
            "hostname; id -u; cat /proc/1/cmdline | tr '\\0' ' '",
        ],
        env=server.environment(),
        capture_output=True,
        text=True,
        timeout=30,
        stdin=subprocess.DEVNULL,
    )
    assert asked.stdout.split()[:2] == ["algo-1", "0"] and "sleep 1000" in asked.stdout, asked
    server.boto("sagemaker").stop_training_job(TrainingJobName="runs")
    assert jobs.wait_until(server.boto("sagemaker"), "runs")["TrainingJobStatus"] == "Stopped"


def test_jobs_outlive_the_server_and_nothing_outlives_them(
    user: User, start_as: Callable[..., Server]
) -> None:
    server = start_as(user, "crash")
    server.boto("s3").create_bucket(Bucket="yard")
    others = {process for process, _ in user.processes()} - {
        process for process, words in user.processes() if server.data in words
    }

    def holder() -> str:
        with open(os.path.join(server.data, "enclosure", "keeper"), encoding="utf-8") as file:
            return file.read()

    first = holder()

    def rest() -> list[Any]:
        """Returns the processes and mounts that remain of this server. The kernel removes its
        namespaces, with everything in them, when the last process ends."""
        with open("/proc/self/mounts", encoding="utf-8") as file:
            return [each for each in user.processes() if each[0] not in others] + [
                line for line in file if server.data in line
            ]

    server.boto("sagemaker").create_training_job(
        **jobs.request(
            "goes-on",
            "echo begun; for i in $(seq 1000); do [ -e /opt/ml/checkpoints/go ] && exit 0; sleep"
            " 0.1; done; exit 1",
            hosts=2,
            CheckpointConfig={"S3Uri": "s3://yard/checkpoints/"},
        )
    )
    wait_for(lambda: said_by_job(server, "goes-on").count("begun") == 2, "the job to run")
    server.kill()
    server.start()
    assert holder() == first, "it enters what its agents are in"
    # The namespace holder is killed, too: agents keep their namespaces open,
    # and the next server makes new ones.
    server.kill()
    os.kill(int(first.split()[0]), signal.SIGKILL)
    server.start()
    assert holder() != first
    for host in (0, 1):
        with open(f"{server.data}/attempts/j1a1/{host}/ml/checkpoints/go", "w", encoding="utf-8"):
            pass
    done = jobs.wait_until(server.boto("sagemaker"), "goes-on")
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")

    server.boto("sagemaker").create_training_job(
        **jobs.request("dies", "echo begun; setsid sleep 1000 & sleep 1000", hosts=2)
    )
    wait_for(lambda: said_by_job(server, "dies").count("begun") == 2, "the second job to run")
    server.kill()
    for agent in server.agents():
        os.kill(agent, signal.SIGKILL)
    wait_for(lambda: not rest(), "all that the server and its agents started to end with them")
    server.start()
    done = jobs.wait_until(server.boto("sagemaker"), "dies")
    assert done["TrainingJobStatus"] == "Failed", done
    wait_for(
        lambda: os.listdir(os.path.join(server.data, "attempts")) == [],
        "what it left to be removed",
    )
    server.stop()
    wait_for(lambda: not rest(), "the namespace holder to end with the last server")


def test_egress_goes_through_slirp4netns(
    user: User, start_as: Callable[..., Server], outside: None, tun: Callable[..., list[str]]
) -> None:
    server = start_as(
        user,
        "outward",
        BOX + f"[network]\nname_servers = ['10.231.7.2']\nallow = ['{THERE}']\n",
        tun(0o666),
    )
    server.boto("s3").create_bucket(Bucket="yard")
    port = server.listen.rsplit(":", 1)[1]
    with subprocess.Popen(
        ["/usr/bin/python3", "-m", "http.server", "--bind", HERE, "8001"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as private:
        try:
            run(
                server,
                "outward",
                f"curl -s --retry 20 --retry-connrefused --retry-delay 1 -m 5 http://{THERE}:8000/"
                f" || echo unreached; echo; curl -s -m 3 http://{HERE}:8001/ || echo not of the"
                f" machine; curl -s -m 3 http://198.18.255.2:{port}/ || echo not its loopback",
            )
            assert said_by_job(server, "outward") == [
                f"you are {HERE}",
                "not of the machine",
                "not its loopback",
            ]
            assert not any(
                "nothing outside" in line for line in said_by_platform(server, "outward")
            )
            run(
                server,
                "alone",
                f"curl -s -m 3 http://{THERE}:8000/ || echo unreached",
                EnableNetworkIsolation=True,
            )
            assert said_by_job(server, "alone") == ["unreached"]
        finally:
            private.kill()


@pytest.fixture
def delegated(user: User) -> Iterator[list[str]]:
    """Makes cgroups (v1) that the user owns; returns a command prefix that runs a command in
    them."""
    if not all(os.path.isdir(f"/sys/fs/cgroup/{name}") for name in CONTROLLERS):
        pytest.skip(
            "this machine has no cgroup v1: what of v2 is delegated is tested by tables only"
        )
    groups = [f"/sys/fs/cgroup/{name}/{user.name}" for name in CONTROLLERS]
    for group in groups:
        os.mkdir(group)
        for name in ("", "/tasks", "/cgroup.procs"):
            shutil.chown(group + name, user.name, user.name)
    yield [
        "sh",
        "-c",
        "".join(f"echo $$ >{group}/cgroup.procs; " for group in groups) + 'exec "$@"',
        "sh",
    ]
    for group in groups:
        for below in [
            *sorted(glob.glob(group + "/*/*/"), reverse=True),
            *glob.glob(group + "/*/"),
            group,
        ]:
            os.rmdir(below)


def test_limits_are_enforced_where_they_are_delegated(
    user: User, start_as: Callable[..., Server], delegated: list[str]
) -> None:
    server = start_as(user, "limited", before=delegated)
    server.boto("s3").create_bucket(Bucket="yard")
    try:
        hungry = "python3 -c 'x = bytearray(5 << 30)'"
        server.boto("sagemaker").create_training_job(**jobs.request("hungry", hungry))
        done = jobs.wait_until(server.boto("sagemaker"), "hungry")
        assert "OutOfMemory: exceeded its 4.0 GiB memory limit" in done["FailureReason"], done[
            "FailureReason"
        ]
        assert not any(
            "share is not enforced" in line for line in said_by_platform(server, "hungry")
        )
        printed = subprocess.run(
            [*server.behind, server.program, "doctor", "--data", server.data],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        assert "delegated to this user: cpu, memory" in printed, printed
    finally:
        server.stop()
        wait_for(
            lambda: not [words for _, words in user.processes() if server.data in words],
            "its processes to leave the groups",
        )


def test_nested_mounts_are_included(user: User, start_as: Callable[..., Server]) -> None:
    tree = user.directory("tree")
    config = f'{BOX}[images."mine"]\nruntime = "machine"\nmounts = {{"/opt/tree" = "{tree}"}}\n'
    mounting = (
        f"mkdir {tree}/inner && mount -t tmpfs none {tree}/inner && echo inner >{tree}/inner/file"
        ' && mount -t tmpfs none /usr/local/games && exec "$@"'
    )
    server = start_as(user, "mounts", config, ["unshare", "--mount", "sh", "-c", mounting, "sh"])
    server.boto("s3").create_bucket(Bucket="yard")
    run(
        server,
        "mounted",
        "cat /opt/tree/inner/file; touch /opt/tree/inner/x 2>/dev/null || echo read-only; touch"
        " /usr/local/games/x 2>/dev/null || echo read-only",
        image="mine",
    )
    assert said_by_job(server, "mounted") == ["inner", "read-only", "read-only"]
    server.behind = user.words()  # made once
    server.stop()


def test_a_job_runs_with_a_single_id(user_of_one_id: User, start_as: Callable[..., Server]) -> None:
    server = start_as(user_of_one_id, "one")
    server.boto("s3").create_bucket(Bucket="yard")
    run(
        server,
        "poor",
        "id -u; chown 5:5 /tmp 2>/dev/null || echo no other owner; echo m >/opt/ml/model/m",
    )
    assert said_by_job(server, "poor") == ["0", "no other owner"]
    layout = oci.Layout(os.path.join(user_of_one_id.home, "layout"))
    layout.image("root", [oci.base() + [oci.file("opt/his", b"his\n", 0o644, uid=1234, gid=1234)]])
    layout.image("other", [oci.base()], {"User": "1234:1234"})
    server.boto("sagemaker").create_training_job(
        **jobs.request(
            "of-root", "cat /opt/his; stat -c %u /opt/his", image=f"oci:{layout.path}:root"
        )
    )
    done = jobs.wait_until(server.boto("sagemaker"), "of-root")
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    assert said_by_job(server, "of-root") == ["his", "0"]
    server.boto("sagemaker").create_training_job(
        **jobs.request("of-another", "true", image=f"oci:{layout.path}:other")
    )
    done = jobs.wait_until(server.boto("sagemaker"), "of-another")
    assert "user 1234:1234 is not among the 1 ids" in done["FailureReason"], done["FailureReason"]


def doctor(user: User, before: Sequence[str] = ()) -> dict[str, tuple[str, str]]:
    printed = subprocess.run(
        [*before, *user.words(), user.program(), "doctor"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return {
        line[9:31].strip(): (line[:7].strip(), line[32:])
        for line in printed.splitlines()
        if line[:7].strip() in ("ok", "limited", "missing")
    }


def test_doctor_says_what_is_withheld(
    user: User, user_of_one_id: User, tun: Callable[..., list[str]]
) -> None:
    closed, opened = doctor(user, tun(0o600)), doctor(user, tun(0o666))
    assert closed["user"] == (
        "ok",
        "runs as an ordinary user, root of 65536 ids; all jobs of the server share them",
    )
    assert (
        closed["egress"][0] == "limited" and "/dev/net/tun cannot be opened" in closed["egress"][1]
    )
    assert opened["egress"] == ("ok", "through slirp4netns")
    assert (
        closed["cgroups"][0] == "limited" and "cpu, memory is not enforced" in closed["cgroups"][1]
    )
    assert (
        closed["volumes"][0] == "limited"
        and "VolumeSizeInGB is not enforced" in closed["volumes"][1]
    )
    for name in ("namespaces", "overlayfs", "bridge, veth", "nftables"):
        assert closed[name][0] == "ok", closed[name]
    assert doctor(user_of_one_id)["user"][0] == "limited"
