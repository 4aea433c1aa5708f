"""Tests jobs on a real Slurm cluster that run as their creators' Unix accounts, through both Slurm
interfaces (commands and REST): who owns them in Slurm, on the nodes' disks and in the accounting,
and what other users can see and do."""

import os
import pathlib
import re
import stat
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests import jobs, nodes
from tests.calls import fresh
from tests.cluster_jobs import REACH_THE_FIRST, WAIT_FOR_STOP, finish, lines, wait_for_line
from tests.ordinary_users import User
from tests.slurm.cluster import NODE_CPUS, Cluster
from tests.slurm.conftest import INTERFACES, interface_keys, keys_of, rest_keys, user_keys
from tests.system.test_channels import file_system
from tests.trainyard_server import Server, wait_for

FORGET_SECONDS_MAX = 180  # slurmctld removes old jobs once a minute


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, accounts: dict[str, User]) -> pathlib.Path:
    """Makes a shared file system with a directory for each user."""
    directory = tmp_path_factory.mktemp("shared")
    for parent in (directory, *directory.parents[:2]):
        parent.chmod(parent.stat().st_mode | 0o055)
    for name, user in accounts.items():
        (directory / name).mkdir(mode=0o700)
        os.chown(directory / name, user.number, user.number)
    return directory


@pytest.fixture(scope="module", params=INTERFACES)
def server(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    accounts: dict[str, User],
    shared: pathlib.Path,
    start: Callable[..., Server],
) -> Server:
    more = interface_keys(cluster, request.param)
    tables = f"[file_systems.'fs-0123456789abcdef0']\ndirectory = '{shared}'\n"
    one = start(user_keys(cluster, accounts, more) + tables)
    one.boto("s3").create_bucket(Bucket="yard")
    return one


def create(server: Server, user: str, script: str, **more: Any) -> str:
    name = fresh("job")
    sagemaker = server.boto("sagemaker", **keys_of(user))
    sagemaker.create_training_job(**jobs.request(name, script, **more))
    return name


def complete(server: Server, user: str, script: str, **more: Any) -> str:
    name = create(server, user, script, **more)
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", (
        job.get("FailureReason"),
        jobs.log_lines(server.boto("logs"), name),
    )
    return name


def last_slurm_job(cluster: Cluster) -> tuple[str, str]:
    """Returns the id of the last job and its user."""
    last = max(cluster.jobs("%A|%u"), key=lambda job: int(job[0]))
    return last[0], last[1]


def run_as(user: User, cluster: Cluster, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*user.words(), f"SLURM_CONF={cluster.config}", *command],
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_slurm_and_its_accounting_record_the_creator_of_a_job(
    cluster: Cluster, server: Server, accounts: dict[str, User]
) -> None:
    for user, account in (("ana", "physics"), ("bob", "chemistry")):
        complete(server, user, "echo done")
        number, owner = last_slurm_job(cluster)
        name = accounts[user].name
        assert owner == name

        def recorded(number: str = number, name: str = name, account: str = account) -> bool:
            rows = cluster.accounting.jobs(f"--user={name}", "--format=JobIDRaw,User,Account,State")
            return [number, name, account, "COMPLETED"] in rows

        wait_for(recorded, f"the accounts of {name}")


def test_the_creator_of_a_job_owns_its_files(
    server: Server, accounts: dict[str, User], shared: pathlib.Path
) -> None:
    there = "/opt/ml/input/data/out"
    name = complete(
        server,
        "ana",
        f"echo mine > {there}/ana/result; mkdir {there}/ana/more; ls {there}/bob || echo refused",
        InputDataConfig=[file_system("out", "/", mode="rw")],
    )
    assert "refused" in lines(server, name)
    for made in ("result", "more"):
        status = (shared / "ana" / made).stat()
        assert (status.st_uid, status.st_gid) == (accounts["ana"].number,) * 2


def test_a_job_of_a_user_without_an_account_is_rejected(cluster: Cluster, server: Server) -> None:
    before = len(cluster.jobs())
    job = finish(server, create(server, "owner", "true"))
    assert job["TrainingJobStatus"] == "Failed"
    assert "'owner' has no unix_user" in job["FailureReason"]
    assert len(cluster.jobs()) == before


def test_agents_of_a_job_run_as_its_creator(
    cluster: Cluster, server: Server, accounts: dict[str, User]
) -> None:
    name = create(server, "ana", WAIT_FOR_STOP)
    wait_for_line(server, name, "ready")
    agents = server.agents() or [
        number for number, words in accounts["ana"].processes() if "trainyard-agent" in words
    ]
    assert agents
    for agent in agents:
        assert os.stat(f"/proc/{agent}").st_uid == accounts["ana"].number
    server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    assert finish(server, name)["TrainingJobStatus"] == "Stopped"
    wait_for(lambda: not accounts["ana"].processes(), "the processes of the job to end")


def test_hosts_of_a_gang_on_one_node_reach_each_other(server: Server) -> None:
    name = complete(server, "ana", f"python3 -c '{REACH_THE_FIRST}'", hosts=2)
    assert lines(server, name, 2) == ["received 1000000"]


def test_hosts_of_a_gang_on_two_nodes_reach_each_other_encrypted(
    cluster: Cluster, server: Server
) -> None:
    reach = f"python3 -c '{REACH_THE_FIRST}'"
    name = complete(server, "ana", reach, hosts=2, instance_type="ml.c5.4xlarge")
    assert lines(server, name, 2) == ["received 1000000"]
    number, _ = last_slurm_job(cluster)
    assert [number, "2"] in cluster.jobs("%A|%D")


def test_a_restarted_server_finds_the_jobs_of_all_accounts(
    cluster: Cluster, server: Server
) -> None:
    running = {user: create(server, user, WAIT_FOR_STOP) for user in ("ana", "bob")}
    for name in running.values():
        wait_for_line(server, name, "ready")
    server.kill()
    server.start()
    for name in running.values():
        server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    for name in running.values():
        assert finish(server, name)["TrainingJobStatus"] == "Stopped"
        assert lines(server, name) == ["ready", "stopping"]
    wait_for(lambda: not cluster.live_jobs(), "Slurm's jobs to end")


def test_a_killed_agent_is_a_lost_host(
    cluster: Cluster, server: Server, accounts: dict[str, User]
) -> None:
    name = create(server, "ana", WAIT_FOR_STOP, hosts=2)
    for host in (1, 2):
        wait_for_line(server, name, "ready", host)
    agents = [
        number
        for number, words in accounts["ana"].processes()
        if words.startswith(cluster.at("bin/trainyard-agent"))
    ]
    assert len(agents) == 2
    os.kill(agents[0], 9)
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Failed"
    assert "lost the host's agent" in job["FailureReason"], job["FailureReason"]
    wait_for(lambda: not accounts["ana"].processes(), "the processes of the job to end")
    wait_for(lambda: not cluster.live_jobs(), "Slurm's job to end")


def test_children_of_an_array_share_slurm_jobs_of_their_creator(
    cluster: Cluster, server: Server, accounts: dict[str, User]
) -> None:
    before = {job[0] for job in cluster.jobs()}
    batch = server.boto("batch", **keys_of("bob"))
    queue = nodes.make_queue(batch)
    job = nodes.wait_until(
        batch,
        nodes.submit(
            batch,
            queue,
            nodes.container(
                "echo child",
                # Each child uses a whole node, so as many run at once as there are nodes.
                resourceRequirements=[
                    {"type": "VCPU", "value": str(NODE_CPUS)},
                    {"type": "MEMORY", "value": "64"},
                ],
            ),
            arrayProperties={"size": 12},
            timeout={"attemptDurationSeconds": 600},
        ),
    )
    assert job["status"] == "SUCCEEDED", job.get("statusReason")
    owners = {job[1] for job in cluster.jobs("%A|%u") if job[0] not in before}
    assert owners == {accounts["bob"].name}
    assert len(cluster.jobs()) - len(before) < 12
    wait_for(lambda: not cluster.live_jobs(), "idle Slurm jobs to end")


def test_other_users_see_no_secret_and_stop_nothing(
    cluster: Cluster, server: Server, accounts: dict[str, User]
) -> None:
    """While ana's job runs, bob can neither read its token nor end it."""
    bob = accounts["bob"]
    name = create(server, "ana", WAIT_FOR_STOP)
    wait_for_line(server, name, "ready")
    number, _ = last_slurm_job(cluster)
    script = cluster.run("scontrol", "write", "batch_script", number, "-")
    (token,) = set(re.findall(r'token\\*": *\\*"([^"\\]{8,})', script))
    of_ana = run_as(accounts["ana"], cluster, "scontrol", "write", "batch_script", number, "-")
    assert token in of_ana.stdout, "the creator may read it"
    pattern = f"[{token[0]}]{token[1:]}"  # which the search's own arguments do not match
    for command in (
        ("scontrol", "write", "batch_script", number, "-"),
        ("scontrol", "-dd", "show", "job", number),
        ("squeue", "--all", "-O", "jobid,comment:1024,command:512,stdin:256,name:128"),
        ("sacct", "--allusers", "--format=ALL", "--parsable2"),
        ("sh", "-c", f"grep -rsa {pattern} {cluster.directory} {server.data} /var/tmp /tmp"),
        ("sh", "-c", f"grep -sa {pattern} /proc/[0-9]*/environ /proc/[0-9]*/cmdline"),
    ):
        seen = run_as(bob, cluster, *command)
        assert token not in seen.stdout + seen.stderr, command
    directory = cluster.at(f"users/node-{accounts['ana'].number}")
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
    assert run_as(bob, cluster, "ls", directory).returncode != 0
    for process, words in accounts["ana"].processes():
        assert run_as(bob, cluster, "kill", "-9", str(process)).returncode != 0, words
    assert run_as(bob, cluster, "scancel", number).returncode != 0
    update = ("scontrol", "update", f"jobid={number}", "comment=x")
    assert run_as(bob, cluster, *update).returncode != 0
    server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    assert finish(server, name)["TrainingJobStatus"] == "Stopped"


def test_a_job_with_a_copied_comment_is_not_taken_for_one_of_the_server(
    cluster: Cluster, server: Server, accounts: dict[str, User]
) -> None:
    name = create(server, "ana", WAIT_FOR_STOP)
    wait_for_line(server, name, "ready")
    number, _ = last_slurm_job(cluster)
    ((_, title, comment),) = [job for job in cluster.jobs("%A|%j|%k") if job[0] == number]
    forged = f"{comment}\n{number}|COMPLETED|None|N/A|n1|{accounts['ana'].name}|{title}|{comment}"
    copies = [
        run_as(
            accounts["bob"],
            cluster,
            "sbatch",
            "--parsable",
            f"--job-name={title}",
            f"--comment={text}",
            "--chdir=/",
            "--output=/dev/null",
            "--wrap=sleep 600",
        ).stdout.strip()
        for text in (comment, forged)
    ]
    cluster.wait_for(
        lambda: all([copy, "RUNNING"] in cluster.jobs("%A|%T") for copy in copies),
        "the copies to run",
    )
    server.kill()
    server.start()
    server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    assert finish(server, name)["TrainingJobStatus"] == "Stopped"
    assert lines(server, name) == ["ready", "stopping"]
    assert set(copies) <= set(cluster.live_jobs()), "they are not the server's"
    cluster.cancel_all()


def test_a_spool_directory_of_another_user_is_rejected(
    cluster: Cluster, server: Server, accounts: dict[str, User]
) -> None:
    """The parent directory is world-writable, as /var/tmp is."""
    theirs = cluster.at(f"users/node-{accounts['bob'].number}")
    aside = theirs + ".aside"
    complete(server, "bob", "true")
    os.rename(theirs, aside)
    try:
        subprocess.run([*accounts["ana"].words(), "mkdir", "-m", "777", theirs], check=True)
        job = finish(server, create(server, "bob", "true"))
        assert job["TrainingJobStatus"] == "Failed"
        assert f"belongs to user {accounts['ana'].number}" in job["FailureReason"]
    finally:
        os.rmdir(theirs)
        os.rename(aside, theirs)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ('ana = { unix_user = "root" }', "is a system account"),
        ('ana = { unix_user = "daemon" }', "is a system account"),
        ('ana = { unix_user = "no-such-user" }', "account 'no-such-user' not found"),
        ('ana = { unix_user = "USER" }\nbob = {}', '"bob" has no unix_user'),
    ],
)
def test_the_server_does_not_start_with_invalid_slurm_users(
    cluster: Cluster,
    start: Callable[..., Server],
    accounts: dict[str, User],
    names: str,
    message: str,
) -> None:
    names = names.replace("USER", accounts["ana"].name)
    with pytest.raises(AssertionError, match=re.escape(message)):
        start(f'agents_listen = "10.219.77.1:4570"\n[slurm.users]\n{names}\n')


def test_the_server_does_not_start_with_a_token_that_cannot_act_for_other_users(
    cluster: Cluster, start: Callable[..., Server], accounts: dict[str, User]
) -> None:
    with pytest.raises(AssertionError, match="does not let the token of"):
        start(user_keys(cluster, accounts, rest_keys(cluster, user=accounts["ana"].name)))


def test_the_end_of_a_job_is_read_from_the_accounting_after_slurmctld_forgot_it(
    cluster: Cluster, start: Callable[..., Server]
) -> None:
    """The server is stopped (SIGSTOP) until slurmctld has forgotten the job."""
    server = start()
    server.boto("s3").create_bucket(Bucket="yard")
    name = fresh("job")
    server.boto("sagemaker").create_training_job(**jobs.request(name, WAIT_FOR_STOP))
    wait_for_line(server, name, "ready")
    number, _ = last_slurm_job(cluster)
    server.process.send_signal(19)  # SIGSTOP
    try:
        cluster.run("scancel", number)
        cluster.set_option("MinJobAge", "2")
        wait_for(
            lambda: number not in {job[0] for job in cluster.jobs("%A")},
            "slurmctld to forget the job",
            FORGET_SECONDS_MAX,
        )
    finally:
        cluster.set_option("MinJobAge", "300")
        server.process.send_signal(18)  # SIGCONT
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Failed"
    # 24.11's accounting does not say by whom.
    assert f"Slurm job {number} is CANCELLED" in job["FailureReason"], job["FailureReason"]
