"""Tests distributions across real hosts: the platform starts the ranks, reports the first error,
and ends when they end."""

import io
import pathlib
import subprocess
import zipfile

import pytest

from tests import jobs, scripts, trainyard_server
from tests.trainyard_server import Server


@pytest.fixture(scope="module")
def cluster(server: Server) -> Server:
    server.boto("s3").create_bucket(Bucket="yard")
    return server


DDP = """
import os, signal, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(7)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
step = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.arange(32, dtype=torch.float32).reshape(8, 4)[rank::world] / 32
for _ in range(3):
    step.zero_grad()
    model(data).square().mean().backward()
    step.step()
weights = [round(w, 6) for w in model.module.weight.flatten().tolist()]
print("RANK", rank, "of", world, "local", os.environ["LOCAL_RANK"], "on", os.environ["SM_CURRENT_HOST"], weights, flush=True)
if rank == 0:
    torch.save(model.module.state_dict(), os.path.join(os.environ["SM_MODEL_DIR"], "model.pt"))
if "--fail-rank" in sys.argv:
    if rank == int(sys.argv[sys.argv.index("--fail-rank") + 1]):
        raise ValueError("no such column")
    signal.pause()  # until the job is stopped: in a barrier, gloo may end this rank earlier
dist.barrier()
"""
TORCH = {"sagemaker_torch_distributed_enabled": True, "sagemaker_instance_type": "ml.t3.medium"}


def test_torch_distributed_on_two_hosts(cluster: Server) -> None:
    _, lines = scripts.run(
        cluster,
        "ddp",
        "train.py",
        {"train.py": DDP},
        hosts=2,
        hyperparameters=TORCH | {"sagemaker_mpi_num_of_processes_per_host": 2},
    )
    ranks = sorted(line.split(" ", 8) for line in lines if line.startswith("RANK"))
    assert [rank[1:8] for rank in ranks] == [
        [str(k), "of", "4", "local", str(k % 2), "on", f"algo-{k // 2 + 1}"] for k in range(4)
    ]
    assert len({rank[8] for rank in ranks}) == 1, "all ranks have the same weights"


def test_the_first_error_is_reported_with_host_and_rank(cluster: Server) -> None:
    done, _ = scripts.run(
        cluster,
        "ddp-fails",
        "train.py",
        {"train.py": DDP},
        hosts=2,
        status="Failed",
        hyperparameters=TORCH | {"fail-rank": 1},
    )
    assert done["FailureReason"].startswith(
        "AlgorithmError: ExecuteUserScriptError: ValueError: no such column (algo-2, rank 1, exit"
        " code 1)"
    ), done["FailureReason"]
    assert done["FailureReason"].endswith("exit code: 1 (algo-2)")


def wheel(name: str) -> bytes:
    """Makes a wheel of one empty package."""
    buffer, info = io.BytesIO(), f"{name}-1.dist-info"
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(
            f"{info}/RECORD",
            f"{name}/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
        )
    return buffer.getvalue()


@pytest.mark.parametrize(
    "brings, status", [("smdistributed", "Completed"), ("another", "Failed"), (None, "Failed")]
)
def test_a_script_that_needs_smdistributed_runs_where_its_packages_bring_it(
    cluster: Server, brings: str | None, status: str
) -> None:
    files: dict[str, str | bytes] = {"train.py": "import smdistributed\nprint('it is there')\n"}
    if brings:
        files |= {
            "requirements.txt": f"--no-index\n--find-links wheels\n{brings}\n",
            f"wheels/{brings}-1-py3-none-any.whl": wheel(brings),
        }
    done, lines = scripts.run(
        cluster,
        f"smd-{brings or 'nothing'}",
        "train.py",
        files,
        status=status,
        hyperparameters={
            "sagemaker_distributed_dataparallel_enabled": True,
            "sagemaker_instance_type": "ml.t3.medium",
        },
    )
    if status == "Completed":
        assert "it is there" in lines
    else:
        assert "The script names smdistributed" in done["FailureReason"], done["FailureReason"]


MPI = {
    "sagemaker_mpi_enabled": True,
    "sagemaker_mpi_num_of_processes_per_host": 2,
    "sagemaker_mpi_custom_mpi_options": "",
}
MPI4PY = """
import os, signal, sys
from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(world.Get_rank() + 1)
print("RANK", world.Get_rank(), "of", world.Get_size(), "on", MPI.Get_processor_name(), os.environ["SM_CURRENT_HOST"], "sum", total, os.environ["SM_HP_EPOCHS"], flush=True)
if len(sys.argv) > 3 and world.Get_rank() == int(sys.argv[4]):
    raise RuntimeError("diverged")
world.Barrier()
"""


def test_mpi_on_two_hosts(cluster: Server) -> None:
    _, lines = scripts.run(
        cluster,
        "mpi",
        "train.py",
        {"train.py": MPI4PY},
        hosts=2,
        hyperparameters=MPI | {"epochs": 3},
    )
    ranks = sorted(line for line in lines if "RANK" in line)
    assert ranks == [
        f"[1,mpirank:{k},algo-{k // 2 + 1}]<stdout>:RANK {k} of 4 on algo-{k // 2 + 1}"
        f" algo-{k // 2 + 1} sum 10 3"
        for k in range(4)
    ], lines


def test_an_mpi_ranks_error_is_reported_not_the_launchers(cluster: Server) -> None:
    done, lines = scripts.run(
        cluster,
        "mpi-raises",
        "train.py",
        {"train.py": MPI4PY},
        hosts=2,
        status="Failed",
        hyperparameters=MPI | {"epochs": 3, "fail": 3},
    )
    assert done["FailureReason"].startswith(
        "AlgorithmError: ExecuteUserScriptError: RuntimeError: diverged (algo-2, rank 3, "
    ), done["FailureReason"]


CRASH = """
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
int main(int count, char** words) {
  int rank, total = 0, one = 1;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d\\n", rank, total);
  fflush(stdout);
  if (count > 2 && rank == 1) raise(SIGSEGV);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Compiles a C program with MPI, as an image contains."""
    folder = tmp_path_factory.mktemp("mpi")
    (folder / "crash.c").write_text(CRASH)
    subprocess.run(["/usr/bin/mpicc", "-o", folder / "crash", folder / "crash.c"], check=True)
    return (folder / "crash").read_bytes()


def test_mpi_runs_any_program(cluster: Server, program: bytes) -> None:
    files: dict[str, str | bytes] = {
        "train.sh": '#!/bin/sh\nchmod +x crash; exec ./crash "$@"\n',
        "crash": program,
    }
    _, lines = scripts.run(
        cluster,
        "mpi-c",
        "train.sh",
        files,
        hosts=2,
        hyperparameters=MPI
        | {
            "sagemaker_mpi_num_of_processes_per_host": 1,
            "sagemaker_mpi_custom_mpi_options": "-x A=1 --NCCL_DEBUG WARN",
        },
    )
    assert {
        "[1,mpirank:0,algo-1]<stdout>:rank 0 of 2",
        "[1,mpirank:1,algo-2]<stdout>:rank 1 of 2",
    } <= set(lines), lines
    done, _ = scripts.run(
        cluster,
        "mpi-crash",
        "train.sh",
        files,
        hosts=2,
        status="Failed",
        hyperparameters=MPI | {"sagemaker_mpi_num_of_processes_per_host": 1, "crash": 1},
    )
    assert "(algo-2, rank 1, killed by SIGSEGV (segmentation fault))\n" in done["FailureReason"], (
        done["FailureReason"]
    )
    assert done["FailureReason"].endswith("exit code: 139 (algo-2)")


READ_TF_CONFIG = """
import json, os
config = json.loads(os.environ["TF_CONFIG"])
print("TASK", config["task"]["type"], config["task"]["index"], "of", json.dumps(config["cluster"], sort_keys=True))
"""


def test_tensorflows_config(cluster: Server) -> None:
    _, lines = scripts.run(
        cluster,
        "servers",
        "train.py",
        {"train.py": READ_TF_CONFIG},
        hosts=3,
        hyperparameters={"sagemaker_parameter_server_enabled": True},
    )
    cluster_spec = (
        '{"master": ["algo-1:2222"], "ps": ["algo-1:2223", "algo-2:2223", "algo-3:2223"], "worker":'
        ' ["algo-2:2222", "algo-3:2222"]}'
    )
    assert sorted(line for line in lines if line.startswith("TASK")) == [
        f"TASK {task} of {cluster_spec}" for task in ("master 0", "worker 0", "worker 1")
    ], lines
    _, lines = scripts.run(
        cluster,
        "mirrored",
        "train.py",
        {"train.py": READ_TF_CONFIG},
        hosts=2,
        hyperparameters={"sagemaker_multi_worker_mirrored_strategy_enabled": True},
    )
    assert sorted(line for line in lines if line.startswith("TASK")) == [
        f'TASK worker {k} of {{"worker": ["algo-1:8890", "algo-2:8890"]}}' for k in (0, 1)
    ], lines


def test_a_distribution_of_one_instance_group(cluster: Server) -> None:
    script = READ_TF_CONFIG.replace(
        "import json, os",
        "import json, os, sys\nif 'TF_CONFIG' not in os.environ: print('ALONE',"
        " os.environ['SM_CURRENT_HOST']); sys.exit()",
    )
    request = scripts.request(
        cluster,
        "groups",
        "train.py",
        {"train.py": script},
        hyperparameters={
            "sagemaker_multi_worker_mirrored_strategy_enabled": True,
            "sagemaker_distribution_instance_groups": ["work"],
        },
    )
    request["ResourceConfig"] = {
        "VolumeSizeInGB": 1,
        "InstanceGroups": [
            {"InstanceGroupName": name, "InstanceType": "ml.t3.medium", "InstanceCount": count}
            for name, count in (("read", 1), ("work", 2))
        ],
    }
    cluster.boto("sagemaker").create_training_job(**request)
    done = jobs.wait_until(cluster.boto("sagemaker"), "groups")
    lines = jobs.log_lines(cluster.boto("logs"), "groups")
    assert done["TrainingJobStatus"] == "Completed", (done.get("FailureReason"), lines)
    assert sorted(line for line in lines if line.startswith(("TASK", "ALONE"))) == [
        "ALONE algo-1"
    ] + [f'TASK worker {k} of {{"worker": ["algo-2:8890", "algo-3:8890"]}}' for k in (0, 1)], lines


WAIT_TO_STOP = """
import os, signal, sys, time
from mpi4py import MPI
rank = MPI.COMM_WORLD.Get_rank()
def save(*_):
    os.write(1, b"stopping %d\\n" % rank)
    open(f"/opt/ml/model/rank-{rank}", "w").write("saved")
    time.sleep(0.5)  # a launcher would have killed it by now
    os.write(1, b"saved %d\\n" % rank)
    os._exit(0)
signal.signal(signal.SIGTERM, save)
os.write(1, b"ready %d\\n" % rank)
while True:
    signal.pause()
"""


def test_ranks_under_mpirun_save_when_they_are_stopped(cluster: Server) -> None:
    sagemaker, logs = cluster.boto("sagemaker"), cluster.boto("logs")
    sagemaker.create_training_job(
        **scripts.request(
            cluster,
            "mpi-stop",
            "train.py",
            {"train.py": WAIT_TO_STOP},
            hosts=2,
            hyperparameters=MPI,
        )
    )

    def output(word: str) -> list[str]:
        return [line for line in jobs.log_lines(logs, "mpi-stop") if f">:{word} " in line]

    trainyard_server.wait_for(lambda: len(output("ready")) == 4, "four ranks to run")
    sagemaker.stop_training_job(TrainingJobName="mpi-stop")
    done = jobs.wait_until(sagemaker, "mpi-stop")
    assert done["TrainingJobStatus"] == "Stopped" and len(output("saved")) == 4, jobs.log_lines(
        logs, "mpi-stop"
    )


# As in the post on Mask R-CNN: the same entry point on every host; the first one runs mpirun
# through ssh, the others look after a while whether the processes that mpirun started with them are
# gone.
OWN_MPIRUN = """
import json, os, shutil, socket, subprocess, time

hosts, here = sorted(json.loads(os.environ["SM_HOSTS"])), os.environ["SM_CURRENT_HOST"]
keys = os.environ["SM_CHANNEL_KEYS"]
os.makedirs("/run/sshd", exist_ok=True)
os.makedirs("/root/.ssh", mode=0o700, exist_ok=True)
for name in ("id", "id.pub"):
    shutil.copy(os.path.join(keys, name), "/root/.ssh/" + name)
os.chmod("/root/.ssh/id", 0o600)
shutil.copy("/root/.ssh/id.pub", "/root/.ssh/authorized_keys")
with open("/root/.ssh/config", "w") as file:
    file.write("Host algo-*\\n  IdentityFile /root/.ssh/id\\n  StrictHostKeyChecking no\\n  UserKnownHostsFile /dev/null\\n  LogLevel ERROR\\n")
with open("/etc/shadow", "w") as file:
    file.write("root:*:19000::::::\\n")
subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/tmp/host"], check=True)
with open("/tmp/sshd_config", "w") as file:
    file.write("Port 22\\nHostKey /tmp/host\\nPasswordAuthentication no\\n")
subprocess.run(["/usr/sbin/sshd", "-f", "/tmp/sshd_config"], check=True)


def runs(name):
    return subprocess.run(["pgrep", "-x", name], stdout=subprocess.DEVNULL).returncode == 0


def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise SystemExit("waited too long")


def listens(host):
    try:
        return socket.create_connection((host, 22), 1).recv(1) == b"S"
    except OSError:
        return False


if here == hosts[0]:
    wait_for(lambda: all(listens(host) for host in hosts))
    # One write for each line: mpirun forwards what it reads, and pieces of ranks would mix.
    script = ("import os; from mpi4py import MPI; w = MPI.COMM_WORLD; "
              "os.write(1, ('rank %d of %d on %s' % (w.Get_rank(), w.Get_size(), MPI.Get_processor_name()) + chr(10)).encode())")
    raise SystemExit(subprocess.run(["mpirun", "-np", str(len(hosts)), "--host", ",".join(hosts), "--allow-run-as-root", "-mca", "btl_tcp_if_include", "eth0",
                                     "-mca", "oob_tcp_if_include", "eth0", "-x", "PATH", "/usr/bin/python3", "-c", script]).returncode)
wait_for(lambda: runs("orted"))
wait_for(lambda: not runs("orted"))
print("mpirun is through with", here)
"""


def test_an_entry_point_with_its_own_sshd_and_mpirun(
    cluster: Server, tmp_path: pathlib.Path
) -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "id"], check=True
    )
    for name in ("id", "id.pub"):
        cluster.boto("s3").upload_file(str(tmp_path / name), "yard", f"keys/{name}")
    _, lines = scripts.run(
        cluster,
        "own-mpirun",
        "train.py",
        {"train.py": OWN_MPIRUN},
        hosts=2,
        InputDataConfig=[
            {
                "ChannelName": "keys",
                "DataSource": {
                    "S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://yard/keys/"}
                },
            }
        ],
    )
    assert {
        "rank 0 of 2 on algo-1",
        "rank 1 of 2 on algo-2",
        "mpirun is through with algo-2",
    } <= set(lines), lines


STUBBORN = """
import os, signal, time
rank = int(os.environ["RANK"])
if rank == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("waits forever", flush=True)
    time.sleep(1000)
raise KeyError("label")
"""


def test_ranks_that_wait_for_a_failed_one_are_ended(cluster: Server) -> None:
    """Rank 0 waits and ignores SIGTERM; the job still ends with the error of rank 1."""
    done, _ = scripts.run(
        cluster,
        "stubborn",
        "train.py",
        {"train.py": STUBBORN},
        hosts=2,
        status="Failed",
        hyperparameters=TORCH,
    )
    assert done["FailureReason"].startswith(
        "AlgorithmError: ExecuteUserScriptError: KeyError: 'label' (algo-2, rank 1, exit code 1)"
    ), done["FailureReason"]


SAVING = WAIT_TO_STOP.replace(
    "from mpi4py import MPI\nrank = MPI.COMM_WORLD.Get_rank()", 'rank = int(os.environ["RANK"])'
).replace("sleep(0.5)", "sleep(0.5 + 0.5 * rank)")


def test_torch_ranks_save_when_they_are_stopped(cluster: Server) -> None:
    """Each rank gets SIGTERM once, also if the ranks of the first host finish earlier: a second
    signal would interrupt the handler that saves."""
    sagemaker, logs = cluster.boto("sagemaker"), cluster.boto("logs")
    sagemaker.create_training_job(
        **scripts.request(
            cluster,
            "torch-stop",
            "train.py",
            {"train.py": SAVING},
            hosts=2,
            hyperparameters=TORCH | {"sagemaker_mpi_num_of_processes_per_host": 2},
        )
    )
    trainyard_server.wait_for(
        lambda: sum(line.startswith("ready ") for line in jobs.log_lines(logs, "torch-stop")) == 4,
        "four ranks to run",
    )
    sagemaker.stop_training_job(TrainingJobName="torch-stop")
    done = jobs.wait_until(sagemaker, "torch-stop")
    output = sorted(
        line
        for line in jobs.log_lines(logs, "torch-stop")
        if line.startswith(("stopping ", "saved "))
    )
    assert done["TrainingJobStatus"] == "Stopped" and output == [
        f"{word} {rank}" for word in ("saved", "stopping") for rank in range(4)
    ], output
