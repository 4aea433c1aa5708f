"""Lists the suites of ./yard test, what each runs, and which changed modules reach it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Set

from tests import reach

FILES_AT_A_TIME = 3  # on two processors: tests of clients wait for servers, and the other way round
PYTHON = "build/venv/bin/python"
SUITE_SECONDS_MAX = 1500  # a suite that takes longer hangs
BUILD_SECONDS_MAX = 3000  # two cores, and no object in the cache
RETRY_NOTE = "note: retried:"  # stands between a run of pytest and the retry of what failed
INTERRUPTIONS_OF_A_RESULT = 100  # the number that the documentation guarantees


@dataclasses.dataclass
class Suite:
    name: str
    about: str
    command: str
    # How its counts are read: "ctest", "gtest", "pytest", or "exit" (its own closing line
    # "N passed, N failed", else one check: it passes or it fails).
    counts: str = "exit"
    # What it builds, by itself: done while the suites before it wait for processes and clocks.
    build: str = ""
    seconds_max: int = SUITE_SECONDS_MAX
    # It shares nothing with other suites: it runs as soon as it is built, with what they leave of
    # the processors.
    in_background: bool = False
    # It has servers of its own, and waits for them most of the time: it runs next to the suites
    # before it.
    next_to_others: bool = False
    # Of a thorough suite: the modules whose change reaches it.
    of: frozenset[str] = frozenset()

    @property
    def concurrent(self) -> bool:
        return self.in_background or self.next_to_others


def pytest(where: str, python: str = "build/venv/bin/python", workers: int = 0) -> str:
    """Returns a command that runs tests, and repeats failed ones once: the machine is shared with
    other programs, and a fault of the code fails twice. If the tests of a file build on each other
    (the mark in_order), all of them are repeated. `workers`: the number of files that run at a
    time."""
    parallel = f" -n {workers} --dist loadfile --no-loadscope-reorder" if workers else ""
    slowest = " --durations=10 --durations-min=5"
    return (
        f"{python} -m pytest -q{slowest}{parallel} {where} || {{ echo '{RETRY_NOTE}';"
        f" {python} -m pytest -q --retry {where}; }}"
    )


def configured(preset: str) -> str:
    return f"{{ [ -f build/{preset}/build.ninja ] || cmake --preset {preset}; }}"


# Modules whose tests make links, mounts and processes of containers, which suites look for. They
# run when those suites have ended.
MACHINE = ("networks", "containers", "mount", "preflight", "launch", "agent")


def module_programs(filters: Mapping[str, str], preset: str) -> str:
    """Returns a command that runs the test programs of modules (name -> filter), each in its
    module's folder."""
    return " && ".join(
        f"(cd src/{reach.folder_of(name)} && GTEST_FILTER='{chosen}'"
        f" ../../../build/{preset}/bin/{name}_test --gtest_brief=1)"
        for name, chosen in filters.items()
    )


# The programs are all that the suites up to "alone" run. They wait for processes and clocks most of
# the time; meanwhile the tests of the modules are built, and run.
SUITES = [
    Suite(
        "build",
        "g++ release of the programs, the console's pages, and Python's packages meanwhile",
        f"{configured('release')} && {{ ./yard setup & setup=$!; ninja -C build/release programs"
        " trainyard_collectives; built=$?; wait $setup && [ $built = 0 ]; } && ./yard link",
        seconds_max=BUILD_SECONDS_MAX,
    ),
    Suite(
        "tidy",
        "modules, language, style, links",
        f"{PYTHON} -m pytest -q tests/tidy --ignore tests/tidy/test_headers.py",
        "pytest",
    ),
    Suite("example", "examples/01_digits, start to end", "examples/01_digits/run --check"),
    Suite(
        "campaign",
        "examples/06_campaign: four servers, four namespaces, one lost and found",
        "examples/06_campaign/run --check",
    ),
    Suite(
        "conformance",
        "unmodified AWS clients against a live server",
        pytest("tests/conformance", workers=FILES_AT_A_TIME),
        "pytest",
    ),
    Suite(
        "journeys",
        "days of users, the documents' snippets and the SDKs' features, as they are documented",
        pytest("tests/journeys", workers=FILES_AT_A_TIME),
        "pytest",
    ),
    Suite(
        "system",
        "real processes in jobs",
        pytest("tests/system -m 'not alone'", workers=FILES_AT_A_TIME),
        "pytest",
    ),
    Suite(
        "console",
        "the console in Chromium, on a server with jobs, and its parts by themselves",
        pytest("tests/console", python="build/browser/bin/python"),
        "pytest",
        next_to_others=True,
    ),
    Suite(
        "alone",
        "the system tests that load, examine or kill what they share, one at a time",
        pytest("tests/system -m alone"),
        "pytest",
    ),
    Suite(
        "machine",
        f"modules whose tests change what the machine shares: {', '.join(MACHINE)}",
        module_programs(dict.fromkeys(MACHINE, "-RealSlurm*"), "release"),
        "gtest",
        build="ninja -C build/release",
        seconds_max=BUILD_SECONDS_MAX,
    ),
    Suite(
        "modules",
        "each other module by itself, and the committed corpora",
        "examples/01_digits/prepare && ctest --test-dir build/release --output-on-failure --repeat"
        f" until-pass:2 -j2 -E '^({'|'.join(MACHINE)})\\.'",
        "ctest",
        build="ninja -C build/release",
        seconds_max=BUILD_SECONDS_MAX,
        in_background=True,
    ),
    Suite(
        "simulator",
        "a thousand clusters, a thousand seeds",
        "build/release/bin/sim --seeds 1000",
        build="ninja -C build/release sim",
        in_background=True,
    ),
]

SIMULATED = frozenset(reach.uses_of(reach.read("modules.txt"))["sim"] | {"sim"})
# Of collectives, the parts that have more than one thread. Of containers, those that start none:
# the user namespace of a container is held by a process that shares our memory, which the sanitizer
# takes for a fork.
THREADED = {
    "containers": "-RealContainer.*:RealImage.Is*:Claims.UserNamespace*",
    "os": "*",
    "net": "*",
    "networks": "*",
    "control": "*",
    "gateway": "*",
    "collectives": "Group.*:Join.*:Rendezvous.*",
    "gradients": "Negotiator.*",
}


# Modules that see libtorch, which no preset of clang builds.
ON_LIBTORCH = ("parallel", "algorithms")


# Benches do not ship. The others include torch 1.13's headers, which clang 14 rejects in C++20,
# since they have a std::vector of an incomplete type. So no preset of clang compiles them.
NOT_LINTED = frozenset({"bench", reach.SDK, *ON_LIBTORCH})


def linted(modules: Set[str] | None) -> Suite:
    """Returns the suite that lints the sources of modules; None: of all."""
    all_names = frozenset(reach.uses_of(reach.read("modules.txt"))) - NOT_LINTED
    return Suite(
        "lint",
        "clang-tidy, and mutexes checked by clang, over the sources that ship",
        f"tests/lint {' '.join(sorted(all_names & modules)) if modules is not None else ''}",
        of=all_names,
    )


def sanitized(modules: Set[str]) -> list[Suite]:
    """Returns the suite of the address sanitizer and the fuzzers. They share a build: the fuzz
    preset is the address sanitizer with coverage, and the modules' tests run in it as well."""
    fuzzers = [name for name, module in reach.fuzzers() if {module, f"corpus {name}"} & modules]
    tests = [module for module in reach.tested() if module in modules and module not in ON_LIBTORCH]
    patterns = [f"^{module}\\." for module in tests] + [f"^fuzz\\.{name}$" for name in fuzzers]
    targets = " ".join([f"{module}_test" for module in tests] + fuzzers)
    return (
        [
            Suite(
                "asan",
                "modules and corpora under address and undefined behaviour",
                "LLVM_PROFILE_FILE=/dev/null ctest --test-dir build/fuzz --output-on-failure"
                f" --repeat until-pass:2 -j2 -R '{'|'.join(patterns)}'",
                "ctest",
                build=f"{configured('fuzz')} && ninja -C build/fuzz {targets}",
                of=frozenset(tests) | {f"corpus {name}" for name in fuzzers},
            ),
            Suite(
                "fuzz",
                "fuzzers reach their decoders' lines from the corpus",
                f"tests/fuzz_coverage {' '.join(fuzzers)}",
                of=frozenset(module for name, module in reach.fuzzers())
                | {f"corpus {name}" for name in fuzzers},
            ),
        ]
        if targets
        else []
    )


def threaded(modules: Set[str]) -> list[Suite]:
    names = [name for name in THREADED if name in modules]
    return (
        [
            Suite(
                "tsan",
                f"{', '.join(names)} under the thread sanitizer",
                module_programs({name: THREADED[name] for name in names}, "tsan"),
                "gtest",
                build=(
                    f"{configured('tsan')} && ninja -C build/tsan"
                    f" {' '.join(f'{name}_test' for name in names)}"
                ),
                of=frozenset(names),
            )
        ]
        if names
        else []
    )


CURRENT_TESTS = frozenset({reach.TORCH_TESTS, reach.FRAMEWORK_TESTS})
# Their environments are gigabytes, from PyPI.
CURRENT_FRAMEWORKS = [
    Suite(
        "current",
        "the tests of torch next to the current torch",
        "build/torch-current/bin/python -m pytest -q tests/torch --ignore"
        " tests/torch/test_job.py --ignore tests/torch/test_install.py",
        "pytest",
        build="tests/torch/prepare current",
        of=CURRENT_TESTS,
    ),
    Suite(
        "keras",
        "horovod.tensorflow and horovod.keras next to the current TensorFlow",
        "build/tensorflow/bin/python -m pytest -q tests/torch/test_horovod_keras.py",
        "pytest",
        build="tests/torch/prepare tensorflow",
        of=CURRENT_TESTS,
    ),
    Suite(
        "frameworks",
        "current frameworks' own distributions, in jobs",
        pytest("tests/frameworks"),
        "pytest",
        build="tests/frameworks/prepare",
        of=CURRENT_TESTS,
    ),
]


UPGRADE = Suite(
    "upgrade",
    "the last release's state, agents and server next to today's",
    pytest("tests/upgrade"),
    "pytest",
    build=(
        f"{configured('release')} && ninja -C build/release trainyard trainyard-agent"
        " trainyard-entry trainyard-trainer && tests/upgrade/prepare"
    ),
    seconds_max=BUILD_SECONDS_MAX,
    of=frozenset({reach.UPGRADE_TESTS}),
)


def on_kubernetes() -> list[Suite]:
    return [
        Suite(
            "kubernetes",
            "jobs of a server on a real Kubernetes control plane, with two nodes of the tests",
            pytest("tests/kubernetes"),
            "pytest",
            build="tests/kubernetes/prepare",
            of=frozenset({reach.KUBERNETES_TESTS}),
        ),
        Suite(
            "kubelets",
            "jobs of a server on two nodes with kubelet and containerd, of which one fails",
            pytest("tests/kubelets"),
            "pytest",
            build="./yard packages kubelets && tests/kubernetes/prepare",
            of=frozenset({reach.KUBERNETES_TESTS}),
        ),
        Suite(
            "kwok",
            "a server on a Kubernetes cluster of 5,000 simulated nodes with 20,000 pods",
            pytest("tests/kwok"),
            "pytest",
            build="tests/kubernetes/prepare",
            of=frozenset({reach.KUBERNETES_TESTS}),
        ),
    ]


def on_clusters() -> list[Suite]:
    """Returns the suites whose jobs run on Slurm or Kubernetes."""
    return [
        Suite(
            "slurm",
            "jobs of a server on a real Slurm cluster of three nodes",
            "export PATH=$PATH:/usr/sbin && " + pytest("tests/slurm"),
            "pytest",
            build="./yard packages slurm",
            of=frozenset({reach.SLURM_TESTS}),
        ),
        Suite(
            "cluster",
            "`trainyard cluster`: four machines in namespaces become a Slurm cluster, and are as"
            " before",
            "export PATH=$PATH:/usr/sbin && " + pytest("tests/cluster"),
            "pytest",
            build="./yard packages cluster",
            of=frozenset({reach.CLUSTER_TESTS}),
        ),
        Suite(
            "slurm-current",
            "the same on Debian 13's Slurm, by each version of its REST API",
            "export PATH=$PWD/build/slurm-current/bin:$PATH:/usr/sbin && " + pytest("tests/slurm"),
            "pytest",
            build="./yard packages slurm && tests/slurm/prepare",
            of=frozenset({reach.SLURM_TESTS}),
        ),
        *on_kubernetes(),
        Suite(
            "launchers",
            "the examples' job files on this machine, on Slurm and on Kubernetes, unchanged",
            "examples/01_digits/prepare && export PATH=$PATH:/usr/sbin && "
            + pytest("tests/launchers"),
            "pytest",
            build="./yard packages slurm && tests/kubernetes/prepare && tests/torch/prepare",
            of=frozenset({reach.LAUNCHER_TESTS}),
        ),
    ]


def thorough(modules: Set[str] | None = None) -> list[Suite]:
    """Returns the thorough suites; with `modules`, those that these modules reach."""
    every = frozenset(reach.uses_of(reach.read("modules.txt"))) | {
        f"corpus {name}" for name, _ in reach.fuzzers()
    }
    chosen = every if modules is None else modules
    suites = [
        Suite(
            "headers",
            "each header compiles alone",
            f"{PYTHON} -m pytest -q tests/tidy/test_headers.py",
            "pytest",
            of=every,
        ),
        Suite(
            "bugs",
            "planted bugs are found by the simulator",
            "sim/find_bugs",
            build=f"{configured('release')} && ninja -C build/release sim",
            of=SIMULATED,
        ),
        Suite(
            "torch",
            "PyTorch over our collectives: next to gloo, DDP, dead ranks, jobs",
            pytest("tests/torch", "build/torch/bin/python"),
            "pytest",
            build="tests/torch/prepare",
            of=frozenset({reach.TORCH_TESTS}),
        ),
        Suite(
            "libtorch",
            f"modules that see libtorch: {', '.join(ON_LIBTORCH)}",
            module_programs(dict.fromkeys(ON_LIBTORCH, "*"), "release"),
            "gtest",
            build=(
                "./yard packages algorithms && ninja -C build/release algorithm_programs"
                " algorithm_tests"
            ),
            of=frozenset(ON_LIBTORCH),
        ),
        Suite(
            "xgboost",
            "SageMaker's XGBoost by its image names, and stock workers at our tracker",
            pytest("tests/algorithms/test_xgboost.py"),
            "pytest",
            build=("./yard packages xgboost && ninja -C build/release programs xgboost_programs"),
            of=frozenset({reach.XGBOOST_TESTS}),
        ),
        Suite(
            "algorithms",
            "SageMaker's algorithms by their image names, on the handwritten digits",
            "examples/01_digits/prepare && "
            + pytest("tests/algorithms --ignore tests/algorithms/test_xgboost.py"),
            "pytest",
            build="./yard packages algorithms && ninja -C build/release algorithm_programs",
            of=frozenset({reach.ALGORITHM_TESTS}),
        ),
        *on_clusters(),
        linted(modules),
        *sanitized(chosen),
        *threaded(chosen),
        UPGRADE,
        *CURRENT_FRAMEWORKS,  # last: no suite begins late in a run of CI, and these download
    ]
    return [suite for suite in suites if modules is None or suite.of & modules]


def reached_suites() -> list[Suite]:
    """Returns the thorough suites that the changes since their last run reach."""
    commits = reach.baselines()
    modules = {commit: reach.reached_since(commit) for commit in sorted(set(commits.values()))}
    for commit, changed in modules.items():
        print(
            f"changed since {commit[:12]}:"
            f" {'everything' if changed is None else ', '.join(sorted(changed)) or 'nothing'}"
        )
    return [
        suite
        for name in [suite.name for suite in thorough()]
        for suite in thorough(modules[commits[name]] if name in commits else None)
        if suite.name == name
    ]


OPT_IN = {
    "--current-frameworks": CURRENT_FRAMEWORKS,
    "--independent": [
        Suite(
            "independent",
            "moto's own tests of S3 and Logs against a live server",
            f"{PYTHON} -m tests.independent.run",
            build="tests/independent/prepare",
        ),
        Suite(
            "independent-cloudwatch",
            "moto's own tests of CloudWatch against a live server",
            f"{PYTHON} -m tests.independent.run cloudwatch",
            build="tests/independent/prepare",
        ),
    ],
    "--upgrade": [UPGRADE],
}


def interruptions(count: int) -> list[Suite]:
    result = (
        " TRAINYARD_RESULT=tests/results/interruptions.json"
        if count >= INTERRUPTIONS_OF_A_RESULT
        else ""
    )
    return [
        Suite(
            "interruptions",
            f"a job that is interrupted {count} times",
            f"TRAINYARD_INTERRUPTIONS={count}{result} {PYTHON} -m pytest -q -s"
            " tests/system/test_interruptions.py",
            "pytest",
            build=(
                f"{configured('release')} && ninja -C build/release trainyard trainyard-agent"
                " trainyard-entry"
            ),
            seconds_max=600 + 60 * count,
        )
    ]


def array_kills() -> list[Suite]:
    return [
        Suite(
            "array kills",
            "the server is killed amid arrays of 10,000 children",
            "TRAINYARD_ARRAY_CHILDREN=10000 TRAINYARD_ARRAY_KILLS=20"
            f" TRAINYARD_RESULT=tests/results/array_kills.json {PYTHON} -m pytest -q -s"
            " tests/system/test_array_crash.py",
            "pytest",
            build=(
                f"{configured('release')} && ninja -C build/release trainyard trainyard-agent"
                " trainyard-entry"
            ),
            seconds_max=7200,
        )
    ]
