"""Tests `pip install` of the three distributions as their READMEs describe it, and the messages if
torch differs from the version that they were built for."""

import glob
import json
import os
import pathlib
import shutil
import subprocess

import pytest
import torch

from tests import trainyard_server
from tests.torch import ranks

WHEELS = os.path.join(trainyard_server.ROOT, "build", "torch", "wheels")
FOUND = (
    "import importlib.util as u, json; print(json.dumps([n for n in ('trainyard', 'horovod',"
    " 'smdistributed') if u.find_spec(n)]))"
)


def environment(place: pathlib.Path, *options: str) -> pathlib.Path:
    """Makes a new environment; returns its bin folder."""
    subprocess.run(["/usr/bin/python3", "-m", "venv", *options, place], check=True)
    return place / "bin"


def pip(
    folder: pathlib.Path, *arguments: str | os.PathLike[str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [folder / "pip", "install", "--disable-pip-version-check", *arguments],
        cwd=trainyard_server.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Makes a new environment on top of Debian's packages: trainyard was installed first, then the
    two others; returns its bin folder."""
    folder = environment(tmp_path_factory.mktemp("install") / "venv", "--system-site-packages")
    run = pip(folder, "./sdk/python")
    assert run.returncode == 0, run.stdout + run.stderr
    assert json.loads(python(folder, FOUND).stdout) == ["trainyard"]
    run = pip(folder, "./sdk/python/trainyard-horovod", "./sdk/python/trainyard-smddp")
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def python(
    installed: pathlib.Path, code: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [installed / "python", "-c", code],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=ranks.SECONDS_MAX,
        check=False,
    )


def test_it_is_built_for_the_torch_that_is_there_and_runs(installed: pathlib.Path) -> None:
    code = (
        "import torch, trainyard.torch as t; print(t.__file__, t._built.torch_version,"
        " torch.__version__)"
    )
    (packages,) = installed.parent.glob("lib/python*/site-packages")
    expected = f"{packages}/trainyard/torch/__init__.py {torch.__version__} {torch.__version__}\n"
    run = python(installed, code)
    assert run.stdout == expected, run.stderr
    assert ranks.run("beyond_gloo", 2, python=str(installed / "python")) == ["good"] * 2


def test_horovod_and_smddp_find_the_compiled_parts(installed: pathlib.Path) -> None:
    output = subprocess.run(
        [installed / "horovodrun", "--check-build"], capture_output=True, text=True, check=True
    ).stdout
    assert "[X] PyTorch" in output
    run = python(
        installed,
        "import horovod.torch as hvd, smdistributed.dataparallel.torch.torch_smddp; hvd.init();"
        " print(hvd.size())",
    )
    assert run.stdout == "1\n", run.stderr
    run = python(installed, "from trainyard import _library; print(_library.PATH)")
    name = "libtrainyard_collectives.so"
    assert run.stdout.endswith(f"/site-packages/trainyard/{name}\n"), run.stderr


METADATA = """
import importlib.metadata as m, json

def about(name):
    one = m.distribution(name)
    fields, files = one.metadata, one.files
    return {
        "version": one.version,
        "requires": one.requires or [],
        "author": fields["Author"],
        "license": fields["License-Expression"],
        "licenses": fields.get_all("License-File"),
        "python": fields["Requires-Python"],
        "urls": fields.get_all("Project-URL"),
        "classifiers": fields.get_all("Classifier"),
        "readme": fields.get_payload(),
        "pure": "Root-Is-Purelib: true" in one.read_text("WHEEL"),
        "commands": [each.name for each in one.entry_points],
        "packages": sorted({str(file).split("/")[0] for file in files if file.suffix == ".py"}),
        "compiled": sorted(file.name.split(".")[0] for file in files if file.suffix == ".so"),
        "typed": [str(file) for file in files if file.name == "py.typed"],
    }

names = ("trainyard", "trainyard-horovod", "trainyard-smddp")
print(json.dumps({name: about(name) for name in names}))
"""


def test_the_metadata_of_the_three_distributions_is_complete(installed: pathlib.Path) -> None:
    run = python(installed, METADATA)
    about = json.loads(run.stdout) if run.returncode == 0 else pytest.fail(run.stderr)
    version = about["trainyard"]["version"]
    for name, package, requires, compiled, commands in (
        ("trainyard", "trainyard", [], ["_backend", "libtrainyard_collectives"], []),
        ("trainyard-horovod", "horovod", [f"trainyard=={version}"], [], ["horovodrun"]),
        (
            "trainyard-smddp",
            "smdistributed",
            [f"trainyard=={version}", f'trainyard-horovod=={version}; extra == "tensorflow"'],
            [],
            [],
        ),
    ):
        one = about[name]
        assert (one["version"], one["packages"], one["compiled"], one["commands"]) == (
            version,
            [package],
            compiled,
            commands,
        )
        assert [each.replace("'", '"') for each in one["requires"]] == requires
        assert one["pure"] == (not compiled)
        assert one["typed"] == [f"{package}/py.typed"]
        assert (
            one["license"] == "Apache-2.0"
            and one["author"] == "The Trainyard authors"
            and one["licenses"] == ["LICENSE"]
            and one["python"] == ">=3.9"
        )
        assert (
            one["readme"].startswith(f"# {name}: ")
            and one["urls"]
            and "Typing :: Typed" in one["classifiers"]
        )


def test_a_wheel_brings_trainyard_along_and_no_other_version_of_it(tmp_path: pathlib.Path) -> None:
    """pip only prints what it would install; the environment stays empty."""
    folder = environment(tmp_path / "venv")
    for name in ("trainyard-horovod", "trainyard-smddp"):
        run = pip(folder, "--dry-run", "--no-index", "--find-links", WHEELS, name)
        assert (
            run.returncode == 0
            and "trainyard-0.1.0" in run.stdout
            and f"{name}-0.1.0" in run.stdout
        ), run.stdout + run.stderr
        (wheel,) = glob.glob(f"{WHEELS}/{name.replace('-', '_')}-*.whl")
        run = pip(folder, "--dry-run", "--no-index", wheel)
        assert run.returncode != 0 and "trainyard==0.1.0" in run.stderr, run.stdout + run.stderr
    run = pip(
        folder, "--dry-run", "--no-index", "--find-links", WHEELS, "trainyard-smddp[tensorflow]"
    )
    assert run.returncode == 0 and "trainyard-horovod-0.1.0" in run.stdout, run.stdout + run.stderr


def test_smddp_names_the_distribution_that_its_tensorflow_needs(installed: pathlib.Path) -> None:
    code = (
        "import importlib.util; importlib.util.find_spec = lambda name: None; import"
        " smdistributed.dataparallel.tensorflow"
    )
    run = python(installed, code)
    assert (
        run.returncode == 1 and "trainyard-smddp[tensorflow]" in run.stderr.strip().splitlines()[-1]
    ), run.stderr


@pytest.fixture
def changed(installed: pathlib.Path, tmp_path: pathlib.Path) -> tuple[pathlib.Path, dict[str, str]]:
    """Makes a copy of the package that takes precedence over the installed one; returns its folder
    and the variable that selects it."""
    (package,) = glob.glob(
        str(installed.parent / "lib" / "python*" / "site-packages" / "trainyard")
    )
    shutil.copytree(package, tmp_path / "trainyard")
    return tmp_path / "trainyard" / "torch", {"PYTHONPATH": str(tmp_path)}


@pytest.mark.parametrize(
    "built, words",
    [
        (
            "2.3.1",
            [
                "was compiled against torch 2.3.1, but the installed torch is " + torch.__version__,
                "pip install --force-reinstall",
            ],
        ),
        ("", ["torch was not installed", "pip install --force-reinstall"]),
    ],
)
def test_another_torch_than_it_was_built_for_is_refused_with_an_explanation(
    installed: pathlib.Path,
    changed: tuple[pathlib.Path, dict[str, str]],
    built: str,
    words: list[str],
) -> None:
    folder, variables = changed
    (folder / "_built.py").write_text(f'torch_version = "{built}"\n')
    run = python(installed, "import trainyard.torch", **variables)
    last = run.stderr.strip().splitlines()[-1]
    assert (
        run.returncode == 1
        and last.startswith("ImportError: ")
        and all(word in last for word in words)
    ), run.stderr


def test_a_torch_of_another_binary_interface_is_refused_with_an_explanation(
    installed: pathlib.Path, changed: tuple[pathlib.Path, dict[str, str]], tmp_path: pathlib.Path
) -> None:
    """The version is right and the functions differ, as when torch was compiled with other
    options."""
    folder, variables = changed
    (backend,) = folder.glob("_backend*.so")
    (tmp_path / "backend.c").write_text(
        "void *c10_of_another_interface(void);\nvoid *PyInit__backend(void) { return"
        " c10_of_another_interface(); }\n"
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", backend, tmp_path / "backend.c"], check=True)
    run = python(installed, "import trainyard.torch", **variables)
    last = run.stderr.strip().splitlines()[-1]
    assert run.returncode == 1 and last.startswith(
        "ImportError: trainyard.torch was compiled against torch"
    ), run.stderr
    assert "c10_of_another_interface" in last and "pip install --force-reinstall" in last, last
