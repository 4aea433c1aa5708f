"""Makes a cluster of machines, changes it, and undoes it, in one story."""

import json
import re
import subprocess

import pytest

from tests.cluster.machines import Machines
from tests.cluster_jobs import REACH_THE_FIRST, create, finish, lines
from tests.trainyard_server import PROGRAM, Server, wait_for

pytestmark = pytest.mark.in_order

before: dict[str, dict[str, str]] = {}
configuration: list[str] = []  # of Trainyard's server, as `init` prints it


def test_the_machines_have_no_cluster(machines: Machines) -> None:
    for name in machines.names:
        before[name] = machines.digest(name)
    assert "has no cluster" in machines.cluster("status", code=1).stderr


def test_a_dry_run_prints_the_steps_and_changes_nothing(machines: Machines) -> None:
    planned = machines.cluster("init", "n1", "--dry-run").stdout
    for text in ("make a random key", "write /etc/slurm/slurm.conf", "start slurmctld", "n1 ("):
        assert text in planned, planned
    refused = machines.cluster("init", "n1", code=1)
    assert "--yes" in refused.stderr
    assert machines.digest("c1") == before["c1"] and machines.digest("n1") == before["n1"]


def test_a_cluster_of_three_machines_runs_jobs(machines: Machines) -> None:
    done = machines.cluster("init", "n1", "n2", "--yes")
    configuration.append(done.stdout[done.stdout.index("[server]") :])
    assert 'partition = "trainyard"' in configuration[0]
    nodes = machines.on("c1", "sinfo -h -N -o '%N %t %G'").splitlines()
    assert nodes == ["c1 idle (null)", "n1 idle (null)", "n2 idle gpu:nvidia_t4:2"]
    ran = machines.on("c1", "srun -N3 --mem=50 hostname").split()
    assert sorted(ran) == ["c1", "n1", "n2"]
    on_gpus = machines.on(
        "n1", "srun --gres=gpu:2 --mem=50 printenv SLURMD_NODENAME GPU_DEVICE_ORDINAL"
    )
    assert on_gpus.split() == ["n2", "0,1"]


def test_a_job_opens_only_the_gpus_that_it_was_given(machines: Machines) -> None:
    """The device files have no driver, so a job that may open them finds no device."""
    opened = "sh -c ': </dev/nvidia0' 2>&1"
    assert "Operation not permitted" in machines.on(
        "c1", f"srun -w n2 --mem=50 {opened}", code=None
    )
    assert "No such device" in machines.on(
        "c1", f"srun -w n2 --gres=gpu:2 --mem=50 {opened}", code=None
    )


def test_a_server_with_the_printed_configuration_runs_a_gang_on_two_nodes(
    machines: Machines,
) -> None:
    server = Server(
        machines.at("yard"),
        configuration[0],
        f"{machines.address('c1')}:4566",
        machines.inside("c1"),
    )
    try:
        server.start()
        server.boto("s3").create_bucket(Bucket="yard")
        name = create(server, f"python3 -c '{REACH_THE_FIRST}'", hosts=2)
        job = finish(server, name)
        assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
        assert "received 1000000" in lines(server, name, 2)
    finally:
        machines.on("c1", "pkill -x trainyard", code=None)
        server.log.close()


def test_keys_are_the_same_and_closed(machines: Machines) -> None:
    keys = {machines.on(name, "sha256sum </etc/munge/munge.key") for name in ("c1", "n1", "n2")}
    assert len(keys) == 1
    modes = machines.on("n1", "stat -c '%a %U %s' /etc/munge/munge.key")
    assert modes.split() == ["400", "munge", "1024"]
    assert before["c1"]["content of /etc/munge/munge.key"] not in keys.pop()


def test_status_shows_the_nodes(machines: Machines) -> None:
    shown = machines.cluster("status").stdout
    assert re.search(r"^c1 \(controller\)\s+idle\s", shown, re.M), shown
    assert re.search(r"^n2\s+idle\s.*\s2\s+10\.219\.78\.13\s+22\.05", shown, re.M), shown
    nodes = json.loads(machines.cluster("status", "--json").stdout)["nodes"]
    assert [node["state"] for node in nodes] == ["idle"] * 3


def test_the_controller_itself_needs_no_ssh(machines: Machines) -> None:
    done = subprocess.run(
        [*machines.inside("c1"), PROGRAM, "cluster", "status"], capture_output=True, text=True
    )
    assert re.search(r"^n1\s+idle\s", done.stdout, re.M), done.stderr


def test_the_same_command_again_changes_nothing(machines: Machines) -> None:
    trees = {name: machines.digest(name) for name in ("c1", "n1", "n2")}
    assert "Nothing to do" in machines.cluster("init", "n1", "n2").stdout
    assert "Nothing to do" in machines.cluster("add", "n2").stdout
    assert {name: machines.digest(name) for name in trees} == trees


def test_a_daemon_that_ended_is_started_again(machines: Machines) -> None:
    machines.on("n1", "service slurmd stop")
    planned = machines.cluster("init", "--dry-run").stdout
    assert "start slurmd" in planned and "slurm.conf" not in planned, planned
    machines.cluster("init", "--yes")
    assert machines.on("c1", "srun -w n1 --mem=50 hostname").strip() == "n1"


def test_a_machine_joins_while_a_job_runs(machines: Machines) -> None:
    job = machines.on("c1", "sbatch --parsable -w n1 --mem=50 -o /dev/null --wrap 'sleep 600'")
    wait_for(
        lambda: machines.on("c1", f"squeue -h -j {job.strip()} -o %T").strip() == "RUNNING",
        "the job to run",
    )
    machines.cluster("add", "n3", "--yes")
    assert machines.on("n3", "srun -w n3 --mem=50 hostname").strip() == "n3"
    assert machines.on("c1", f"squeue -h -j {job.strip()} -o %T").strip() == "RUNNING"


def test_a_node_with_a_job_is_not_removed(machines: Machines) -> None:
    refused = machines.cluster("remove", "n1", "--yes", code=1)
    assert "jobs use n1" in refused.stderr
    states = machines.on("c1", "sinfo -h -N -n n1 -o %t").strip()
    assert states in ("mix", "alloc"), "it is resumed"
    machines.on("c1", "scancel --user=root")
    wait_for(lambda: machines.on("c1", "squeue -h").strip() == "", "the job to end")


def test_a_removed_machine_is_as_before(machines: Machines) -> None:
    machines.cluster("remove", "n3", "--yes")
    assert machines.digest("n3") == before["n3"]
    assert machines.on("n3", "pidof slurmd munged", code=None).strip() == ""
    assert "n3" not in machines.on("c1", "sinfo -h -N -o %N").split()
    assert len(machines.on("n1", "srun -N3 --mem=50 hostname").split()) == 3


# Stand for the package manager: /run/packages is what it knows, and /run/installed that they are.
QUERY = """#!/bin/sh
[ ! -e /run/installed ] || exec /run/dpkg-query "$@"
exit 1
"""
INSTALL = """#!/bin/sh
echo "$*" >>/run/apt
[ "$1" = update ] || [ -e /run/packages ] || { echo 'E: Unable to locate package' >&2; exit 100; }
[ "$1" = update ] || touch /run/installed
"""


def test_a_machine_whose_packages_cannot_be_installed_does_not_join(machines: Machines) -> None:
    machines.on("n3", "cp /usr/bin/dpkg-query /run/dpkg-query")
    for name, script in (("dpkg-query", QUERY), ("apt-get", INSTALL)):
        machines.on(
            "n3", f"cat >/run/fake-{name} <<'END'\n{script}END\nchmod 0755 /run/fake-{name}"
        )
        machines.on("n3", f"mount --bind /run/fake-{name} /usr/bin/{name}")
    failed = machines.cluster("add", "n3", "--yes", code=1).stderr
    assert re.search(r"^n3: install munge, .*: E: Unable to locate package", failed, re.M), failed
    assert "n3" not in machines.on("c1", "sinfo -h -N -o %N").split()
    machines.on("n3", "touch /run/packages")
    machines.cluster("add", "n3", "--yes")
    assert machines.on("c1", "srun -w n3 --mem=50 hostname").strip() == "n3"
    assert "--no-install-recommends munge slurmd" in machines.on("n3", "cat /run/apt")
    machines.cluster("remove", "n3", "--yes")
    assert machines.digest("n3") == before["n3"]


def test_an_ordinary_user_becomes_root_by_sudo(machines: Machines) -> None:
    # No password is valid; without one the account would be locked.
    machines.on("n3", "useradd --shell /bin/sh --home-dir /var/tmp --password '*' op")
    refused = machines.cluster("add", "op@n3", "--dry-run", code=1).stdout
    assert "a password is required" in refused, refused
    machines.on("n3", "echo 'op ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/op")
    before["n3"] = machines.digest("n3")
    machines.cluster("add", "op@n3", "--yes")
    assert machines.on("c1", "srun -w n3 --mem=50 hostname").strip() == "n3"
    machines.cluster("remove", "op@n3", "--yes")
    assert machines.digest("n3") == before["n3"]


def test_a_command_that_was_killed_is_repeated(machines: Machines) -> None:
    with subprocess.Popen(
        machines.command("add", "n3", "--yes"), stderr=subprocess.PIPE, text=True
    ) as killed:
        assert killed.stderr
        for line in killed.stderr:
            if line.startswith("n3: write /etc/slurm/slurm.conf"):
                killed.kill()
    machines.cluster("add", "n3", "--yes")
    assert machines.on("c1", "srun -w n3 --mem=50 hostname").strip() == "n3"
    assert "Nothing to do" in machines.cluster("init").stdout
    machines.cluster("remove", "n3", "--yes")
    assert machines.digest("n3") == before["n3"]


def test_a_machine_that_does_not_answer_is_named(machines: Machines) -> None:
    done = machines.cluster("add", "gone", "n3", "--yes", code=1)
    assert re.search(r"^gone: .*10\.219\.78\.200", done.stderr, re.M), done.stderr
    assert machines.on("c1", "srun -w n3 --mem=50 hostname").strip() == "n3", "n3 has joined"
    assert "gone" not in machines.cluster("status").stdout


def test_a_foreign_configuration_is_not_touched(machines: Machines) -> None:
    machines.cluster("remove", "n3", "--yes", "--force")
    machines.on("n3", "echo ClusterName=other >/etc/slurm/slurm.conf")
    done = machines.cluster("add", "n3", "--yes", code=1)
    assert "did not write" in done.stdout + done.stderr
    assert machines.on("n3", "cat /etc/slurm/slurm.conf") == "ClusterName=other\n"
    machines.on("n3", "rm /etc/slurm/slurm.conf")
    assert machines.digest("n3") == before["n3"]


def test_a_file_that_was_changed_by_hand_is_not_overwritten(machines: Machines) -> None:
    machines.on("n1", "echo '# mine' >>/etc/slurm/gres.conf")
    done = machines.cluster("init", code=1)
    assert "/etc/slurm/gres.conf was changed by hand" in done.stdout
    machines.cluster("init", "--force", "--yes")
    assert "mine" not in machines.on("n1", "cat /etc/slurm/gres.conf")


def test_a_machine_that_is_off_can_be_forgotten(machines: Machines) -> None:
    machines.switch_off("n2")
    refused = machines.cluster("remove", "n2", "--yes", code=1)
    assert "n2" in refused.stdout + refused.stderr
    machines.cluster("remove", "n2", "--yes", "--forget", "--force")
    assert machines.on("c1", "sinfo -h -N -o %N").split() == ["c1", "n1"]


def test_a_dissolved_cluster_leaves_the_machines_as_before(machines: Machines) -> None:
    machines.cluster("remove", "--all", "--yes")
    for name in ("c1", "n1"):
        assert machines.digest(name) == before[name]
        assert machines.on(name, "pidof slurmctld slurmd munged", code=None).strip() == ""
