"""Every header compiles alone."""

import concurrent.futures
import os
import re
import shutil
import subprocess

from tests.tidy import sources

GROUPS = sorted(
    name
    for name in os.listdir(os.path.join(sources.ROOT, "src"))
    if os.path.isdir(os.path.join(sources.ROOT, "src", name))
)
OUT = os.path.join(sources.ROOT, "build", "test", "headers")
# Paths count from this tree, so that clones share what was compiled.
# libpq's headers are not in a directory that compilers search.
PQ_HEADERS = subprocess.run(
    ["pg_config", "--includedir"], check=True, capture_output=True, text=True
).stdout.strip()
ENVIRONMENT = os.environ | {"CCACHE_BASEDIR": sources.ROOT, "CCACHE_NOHASHDIR": "1"}


def complaint(path: str) -> str | None:
    include = (
        "/".join(path.split("/")[2:])
        if path.startswith("src/")
        else path.removeprefix("apps/").removeprefix("bench/")
    )
    alone = os.path.join(OUT, path.replace("/", "_") + ".cpp")
    with open(alone, "w", encoding="utf-8") as file:
        file.write(f'#include "{include}"\n')
    command = [
        *(["ccache"] if shutil.which("ccache") else []),
        "g++",
        "-std=c++20",
        "-O0",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-missing-field-initializers",
        *(f"-Isrc/{group}" for group in GROUPS),
        "-Iapps",
        "-Ibench",
        "-I.",
        "-Ibuild/release/generated",
        f"-isystem{PQ_HEADERS}",
        "-c",
        "-o",
        alone + ".o",
        alone,
    ]
    done = subprocess.run(
        command, cwd=sources.ROOT, env=ENVIRONMENT, capture_output=True, text=True
    )
    return None if done.returncode == 0 else f"{path}: " + "\n".join(done.stderr.splitlines()[:5])


def needs_torch(path: str) -> bool:
    """sdk/python's build and ./yard algorithms compile these, each first in the .cpp next to it."""
    with open(os.path.join(sources.ROOT, path), encoding="utf-8") as file:
        text = file.read()
    own = re.findall(r'#include "((?:parallel|algorithms)/[\w/]+\.hpp)"', text)
    return bool(re.search(r"#include <(torch|ATen)/", text)) or any(
        needs_torch(f"src/compute/{name}") for name in own
    )


def test_headers_compile_alone() -> None:
    os.makedirs(OUT, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [
            one
            for one in pool.map(
                complaint, (path for path in sources.cpp(".hpp") if not needs_torch(path))
            )
            if one
        ]
    assert not wrong, "\n" + "\n".join(wrong)
