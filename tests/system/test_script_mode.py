"""Tests script mode: the SDK's hyperparameters name a program and an archive of sources, and entry
runs them in any image."""

import json
import os
import pathlib
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests import jobs, scripts
from tests.oci import umoci
from tests.trainyard_server import Server


@pytest.fixture(scope="module")
def cluster(server: Server) -> Server:
    server.boto("s3").create_bucket(Bucket="yard")
    server.boto("s3").put_object(Bucket="yard", Key="data/part-0", Body=b"1,2\n")
    return server


SHOW = """
import json, os, sys
import helper
print("SHOWN " + json.dumps({"argv": sys.argv, "env": dict(os.environ), "helper": helper.__file__, "cwd": os.getcwd()}))
open(os.path.join(os.environ["SM_MODEL_DIR"], "weights"), "w").write("1")
"""


def shown(lines: Sequence[str]) -> dict[str, Any]:
    return json.loads(next(line for line in lines if line.startswith("SHOWN "))[len("SHOWN ") :])


def test_a_script_with_its_arguments_and_variables(cluster: Server) -> None:
    done, lines = scripts.run(
        cluster,
        "plain",
        "train.py",
        {"train.py": SHOW, "helper.py": ""},
        hyperparameters={"epochs": 3, "lr": 0.1, "name": "a b", "x": None},
        InputDataConfig=[
            {
                "ChannelName": "train",
                "DataSource": {
                    "S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://yard/data/"}
                },
            }
        ],
    )
    job = shown(lines)
    assert job["argv"] == ["train.py", "--epochs", "3", "--lr", "0.1", "--name", "a b", "-x", ""]
    assert job["cwd"] == "/opt/ml/code" and job["helper"] == "/opt/ml/code/helper.py"
    env = job["env"]
    assert (
        env["SM_HPS"] == '{"epochs":3,"lr":0.1,"name":"a b","x":null}' and env["SM_HP_LR"] == "0.1"
    )
    assert (
        env["SM_CHANNEL_TRAIN"] == "/opt/ml/input/data/train"
        and env["SM_HOSTS"] == '["algo-1"]'
        and env["SM_NUM_GPUS"] == "0"
    )
    assert (
        env["SM_MODULE_DIR"] == "s3://yard/plain/source/sourcedir.tar.gz"
        and env["SM_USER_ENTRY_POINT"] == "train.py"
    )
    assert (
        env["TRAINING_JOB_NAME"] == "plain"
        and env["SAGEMAKER_JOB_NAME"] == "plain"
        and env["CURRENT_HOST"] == "algo-1"
    )
    assert json.loads(env["SM_TRAINING_ENV"])["num_cpus"] == int(env["SM_NUM_CPUS"]) == 2, (
        "of the instance type, not of the machine"
    )
    assert not any("secret" in name.lower() or "gang" in name.lower() for name in env), (
        "the gang's secret is not a variable"
    )
    assert done["ModelArtifacts"]["S3ModelArtifacts"].endswith("plain/output/model.tar.gz")


def test_a_shell_script(cluster: Server) -> None:
    script = 'echo "$0 has $# arguments: $2"; ls /opt/trainyard/told | wc -l; exit 0\n'
    _, lines = scripts.run(
        cluster,
        "shell",
        "bin/go.sh",
        {"bin/go.sh": "#!/bin/sh\n" + script},
        hyperparameters={"say": "it's $HOME"},
    )
    assert lines[-2:] == ["./bin/go.sh has 2 arguments: it's $HOME", "0"], lines


def test_a_program_of_the_environment_wins(cluster: Server) -> None:
    _, lines = scripts.run(
        cluster,
        "override",
        "no.py",
        {"no.py": "raise SystemExit(9)", "yes.py": "print('yes')"},
        Environment={"SAGEMAKER_PROGRAM": "yes.py"},
    )
    assert "yes" in lines


PACKAGE = """
from setuptools import setup
setup(name="ours", version="1.0", packages=["ours"])
"""


def wheel() -> bytes:
    """Returns a wheel: a zip with the required names."""
    import io
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        zipped.writestr("needed/__init__.py", "answer = 42\n")
        zipped.writestr(
            "needed-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: needed\nVersion: 1.0\n"
        )
        zipped.writestr(
            "needed-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        zipped.writestr(
            "needed-1.0.dist-info/RECORD",
            "needed/__init__.py,,\nneeded-1.0.dist-info/METADATA,,\nneeded-1.0.dist-info/WHEEL,,\nneeded-1.0.dist-info/RECORD,,\n",
        )
    return buffer.getvalue()


def test_requirements_are_installed(cluster: Server) -> None:
    files: dict[str, str | bytes] = {
        "train.py": "import needed; print('the answer is', needed.answer)",
        "requirements.txt": "--no-index\n--find-links index\nneeded==1.0\n",
        "index/needed-1.0-py3-none-any.whl": wheel(),
    }
    _, lines = scripts.run(cluster, "requirements", "train.py", files)
    assert "the answer is 42" in lines


def test_a_package_is_installed_and_run_as_a_module(cluster: Server) -> None:
    files: dict[str, str | bytes] = {
        "setup.py": PACKAGE,
        "ours/__init__.py": "",
        "ours/train.py": "import sys; print(__name__, sys.argv[1:])",
    }
    _, lines = scripts.run(
        cluster,
        "package",
        "ours/train.py",
        files,
        hyperparameters={"epochs": 2},
        Environment={"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1"},
    )
    assert "__main__ ['--epochs', '2']" in lines


# Prints on its standard output only, so that no exception can be found on the other stream.
STEPS_AND_SIGILL = """\
import os
for i in range(100):
    print("step", i, flush=True)
os.kill(os.getpid(), 4)
"""


@pytest.mark.parametrize(
    "name, files, reason",
    [
        (
            "raises",
            {"train.py": "def inner():\n    raise ValueError('no such column')\ninner()\n"},
            (
                "AlgorithmError: ExecuteUserScriptError: ValueError: no such column (algo-1, exit"
                " code 1)"
            ),
        ),
        (
            "exits",
            {"train.py": "import sys; print('out of ideas', file=sys.stderr); sys.exit(7)"},
            "AlgorithmError: ExecuteUserScriptError: out of ideas (algo-1, exit code 7)",
        ),
        (
            "signal",
            {"train.py": "import os; os.kill(os.getpid(), 11)"},
            (
                "AlgorithmError: ExecuteUserScriptError: algo-1, killed by SIGSEGV (segmentation"
                " fault)"
            ),
        ),
        (
            "last-lines",
            {"train.py": STEPS_AND_SIGILL},
            (
                "AlgorithmError: ExecuteUserScriptError: step 99 (algo-1, killed by SIGILL"
                ' (illegal instruction))\nCommand "/usr/bin/python3 train.py"\nstep 80\nstep 81\n'
            ),
        ),
        (
            "unmet",
            {"train.py": "", "requirements.txt": "--no-index\nno-such-package==1\n"},
            (
                "AlgorithmError: InstallRequirementsError: ERROR: No matching distribution found"
                " for no-such-package==1"
            ),
        ),
        (
            "absent",
            {"main.py": ""},
            (
                "AlgorithmError: ClientError: The training entry point 'train.py' is not in the"
                " source directory; /opt/ml/code holds main.py"
            ),
        ),
    ],
)
def test_failures_are_reported_with_their_cause(
    cluster: Server, name: str, files: dict[str, str], reason: str
) -> None:
    done, _ = scripts.run(cluster, f"fails-{name}", "train.py", files, status="Failed")
    assert done["FailureReason"].startswith(reason), done["FailureReason"]
    code = {"exits": 7, "signal": 139, "last-lines": 132}.get(name, 1)
    assert done["FailureReason"].endswith(f", exit code: {code}")


def test_memory_that_runs_out_is_named_with_its_limit(cluster: Server) -> None:
    script = """
import time
kept = []
while True:
    kept.append(b"x" * (64 << 20))
    time.sleep(0.1)  # the agent checks once a second
"""
    done, _ = scripts.run(
        cluster,
        "hungry",
        "train.py",
        {"train.py": script},
        status="Failed",
        ResourceConfig={"InstanceType": "ml.t3.medium"},
    )
    assert (
        "OutOfMemory: exceeded its " in done["FailureReason"]
        and "; largest processes: python3" in done["FailureReason"]
        and "SIGKILL" in done["FailureReason"]
    ), done["FailureReason"]


def test_a_script_that_is_stopped_saves_first(cluster: Server) -> None:
    script = """
import os, signal, sys
def save(*_):
    open("/opt/ml/model/saved", "w").write("in time")
    print("saved")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("ready")
while True:
    signal.pause()
"""
    sagemaker, logs = cluster.boto("sagemaker"), cluster.boto("logs")
    sagemaker.create_training_job(
        **scripts.request(cluster, "stopped", "train.py", {"train.py": script})
    )
    from tests import trainyard_server

    trainyard_server.wait_for(
        lambda: "ready" in jobs.log_lines(logs, "stopped"), "the script to run"
    )
    sagemaker.stop_training_job(TrainingJobName="stopped")
    done = jobs.wait_until(sagemaker, "stopped")
    assert done["TrainingJobStatus"] == "Stopped" and "saved" in jobs.log_lines(logs, "stopped")
    assert done["ModelArtifacts"]["S3ModelArtifacts"].endswith("model.tar.gz")


def test_hosts_without_a_distribution_are_warned(cluster: Server) -> None:
    _, lines = scripts.run(
        cluster,
        "apart",
        "train.py",
        {"train.py": "import os; print('I am', os.environ['SM_CURRENT_HOST'])"},
        hosts=2,
    )
    assert {"I am algo-1", "I am algo-2"} <= set(lines)
    assert sum("2 hosts and no distribution" in line for line in lines) == 2, lines


def image_with(tmp_path: pathlib.Path, name: str, files: Mapping[str, str], *config: str) -> str:
    """Makes an OCI layout of busybox and these files (path -> text), with umoci's options for its
    config."""
    layout, bundle = str(tmp_path / f"{name}-layout"), str(tmp_path / f"{name}-bundle")

    umoci("init", "--layout", layout)
    umoci("new", "--image", f"{layout}:v1")
    umoci("unpack", "--image", f"{layout}:v1", bundle)
    root = os.path.join(bundle, "rootfs")
    os.makedirs(os.path.join(root, "bin"))
    subprocess.run(["cp", "/bin/busybox", os.path.join(root, "bin")], check=True)
    for applet in ("sh", "echo", "cat", "env", "ls"):
        os.symlink("busybox", os.path.join(root, "bin", applet))
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(os.path.join(root, path), 0o755)
    umoci("repack", "--image", f"{layout}:v1", bundle)
    umoci("config", "--image", f"{layout}:v1", "--config.env", "PATH=/bin", *config)
    return f"oci:{layout}:v1"


def test_an_image_without_libraries_and_python(cluster: Server, tmp_path: pathlib.Path) -> None:
    """The image has only busybox, since entry needs nothing of it. An ENTRYPOINT that runs its
    arguments stays in front."""
    image = image_with(
        tmp_path,
        "bare",
        {"start": '#!/bin/sh\necho started through $0\nexec "$@"\n'},
        "--config.entrypoint",
        "/start",
    )
    _, lines = scripts.run(
        cluster,
        "bare",
        "go.sh",
        {"go.sh": '#!/bin/sh\necho "$@ as $SM_CURRENT_HOST"\n'},
        image=image,
        hyperparameters={"epochs": 3},
    )
    assert lines == ["started through /start", "--epochs 3 as algo-1"], lines


def test_an_image_brings_its_own_sources(cluster: Server, tmp_path: pathlib.Path) -> None:
    image = image_with(
        tmp_path,
        "own",
        {"opt/ml/code/go.sh": "#!/bin/sh\necho the image\\'s own script\n"},
        "--config.env",
        "SAGEMAKER_PROGRAM=go.sh",
    )
    request = jobs.request("own-sources", image=image)
    request["AlgorithmSpecification"] = {"TrainingImage": image, "TrainingInputMode": "File"}
    cluster.boto("sagemaker").create_training_job(**request)
    done = jobs.wait_until(cluster.boto("sagemaker"), "own-sources")
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    assert jobs.log_lines(cluster.boto("logs"), "own-sources") == ["the image's own script"]


def test_an_image_with_its_own_toolkit_keeps_it(cluster: Server, tmp_path: pathlib.Path) -> None:
    image = image_with(tmp_path, "toolkit", {"bin/train": "#!/bin/sh\necho its own train\n"})
    _, lines = scripts.run(cluster, "toolkit", "go.sh", {"go.sh": "exit 1"}, image=image)
    assert lines == ["its own train"], lines


TAKE_ROWS = """
import json
import os
import subprocess
with open("/opt/ml/input/config/resourceconfig.json") as f:
    resourceconfig = json.load(f)
n_hosts = len(resourceconfig["hosts"])
current_host_idx = resourceconfig["hosts"].index(resourceconfig["current_host"])
total_rows = 100
start_row = round(current_host_idx * total_rows / n_hosts)
end_row = round((current_host_idx + 1) * total_rows / n_hosts)
print("rows", start_row, end_row)
"""


def test_a_train_executable_takes_its_rows(cluster: Server) -> None:
    """Uses no script mode: a program runs on three hosts, each with its part of the rows."""
    body = jobs.request("rows", hosts=3, image="trainyard/host", HyperParameters={})
    body["AlgorithmSpecification"]["ContainerEntrypoint"] = ["/usr/bin/python3", "-c"]
    body["AlgorithmSpecification"]["ContainerArguments"] = ["import os; exec(os.environ['TRAIN'])"]
    body["Environment"] = {"TRAIN": TAKE_ROWS}
    cluster.boto("sagemaker").create_training_job(**body)
    assert jobs.wait_until(cluster.boto("sagemaker"), "rows")["TrainingJobStatus"] == "Completed"
    assert sorted(jobs.log_lines(cluster.boto("logs"), "rows")) == [
        "rows 0 33",
        "rows 33 67",
        "rows 67 100",
    ]
