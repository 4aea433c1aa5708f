"""`pip install ./sdk/python` as its README says it, and what is said where torch is another than the one it was built for."""

import glob
import os
import shutil
import subprocess

import pytest
import torch

import ranks
import trainyard_server


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The bin folder of a new environment over Debian's packages, with nothing but that command run in it."""
    place = tmp_path_factory.mktemp("install") / "venv"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", place], check=True)
    run = subprocess.run([place / "bin" / "pip", "install", "--disable-pip-version-check", "./sdk/python"], cwd=trainyard_server.ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return place / "bin"


def python(installed, code, **variables):
    return subprocess.run([installed / "python", "-c", code], env={**os.environ, **variables}, capture_output=True, text=True, timeout=ranks.SECONDS_MAX, check=False)


def test_it_is_built_for_the_torch_that_is_there_and_runs(installed):
    run = python(installed, "import torch, trainyard.torch as t; print(t.__file__, t._built.torch_version == torch.__version__)")
    assert run.stdout == f"{glob.glob(str(installed.parent / 'lib' / 'python*'))[0]}/site-packages/trainyard/torch/__init__.py True\n", run.stderr
    assert ranks.run("beyond_gloo", 2, python=str(installed / "python")) == ["good"] * 2
    said = subprocess.run([installed / "horovodrun", "--check-build"], capture_output=True, text=True, check=True).stdout
    assert "[X] PyTorch" in said
    assert python(installed, "import horovod.torch, smdistributed.dataparallel.torch.torch_smddp").returncode == 0


@pytest.fixture
def changed(installed, tmp_path):
    """A copy of the package that comes before the installed one: its folder, and the variable that puts it there."""
    package, = glob.glob(str(installed.parent / "lib" / "python*" / "site-packages" / "trainyard"))
    shutil.copytree(package, tmp_path / "trainyard")
    return tmp_path / "trainyard" / "torch", {"PYTHONPATH": str(tmp_path)}


@pytest.mark.parametrize("built, words", [
    ("2.3.1", ["was compiled against torch 2.3.1, and this is torch " + torch.__version__, "pip install --force-reinstall"]),
    ("", ["there was no torch when it was installed", "pip install --force-reinstall"]),
])
def test_another_torch_than_it_was_built_for_is_refused_in_words(installed, changed, built, words):
    folder, variables = changed
    (folder / "_built.py").write_text(f'torch_version = "{built}"\n')
    run = python(installed, "import trainyard.torch", **variables)
    last = run.stderr.strip().splitlines()[-1]
    assert run.returncode == 1 and last.startswith("ImportError: ") and all(word in last for word in words), run.stderr


def test_a_torch_of_another_binary_interface_is_refused_in_words(installed, changed, tmp_path):
    """Its version is right and its functions are not: as where torch was compiled anew with other options."""
    folder, variables = changed
    backend, = folder.glob("_backend*.so")
    (tmp_path / "backend.c").write_text("void *c10_of_another_interface(void);\nvoid *PyInit__backend(void) { return c10_of_another_interface(); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", backend, tmp_path / "backend.c"], check=True)
    run = python(installed, "import trainyard.torch", **variables)
    last = run.stderr.strip().splitlines()[-1]
    assert run.returncode == 1 and last.startswith("ImportError: trainyard.torch was compiled against torch"), run.stderr
    assert "c10_of_another_interface" in last and "pip install --force-reinstall" in last, last
