"""CI leaves out no suite that a change reaches."""

import os

from tests import reach, suites

MODULES = """# comment: is | no | module
base:    | nlohmann |
host:    base | boost | clock
agent:   base host | |
collectives: base | threads | sockets
launch:  base | |
algorithms: base | torch |
boosting: base | xgboost |
apps:    agent collectives | |
sdk:     collectives | torch |
torch_tests: sdk agent | |
slurm_tests: launch | |
"""


def test_a_change_reaches_what_includes_it() -> None:
    uses = reach.uses_of(MODULES)
    assert uses["agent"] == {"base", "host"}
    assert reach.reached({"host"}, uses) == {"host", "agent", "apps", reach.TORCH_TESTS}
    assert reach.reached({"collectives"}, uses) == {
        "collectives",
        "apps",
        reach.SDK,
        reach.TORCH_TESTS,
    }
    assert reach.reached({"launch"}, uses) == {"launch", reach.SLURM_TESTS}
    assert reach.reached({"base"}, uses) == set(uses)
    assert reach.reached(set(), uses) == set()


def test_paths_belong_to_modules() -> None:
    assert reach.module_of("src/control_plane/schedule/plan.cpp") == "schedule"
    assert reach.module_of("src/api/auth/auth.cpp") == "auth"
    assert reach.module_of("apps/agent/main.cpp") == "apps"
    assert reach.module_of("sdk/python/trainyard-horovod/horovod/torch/optimizer.py") == reach.SDK
    assert reach.module_of("tests/torch/test_horovod.py") == reach.TORCH_TESTS
    assert reach.module_of("tests/corpus/policy_fuzz/a") == "corpus policy_fuzz"
    assert reach.module_of("tests/system/test_crash.py") is None
    assert reach.module_of("README.md") is None


def test_modules_that_clang_cannot_compile_do_not_reach_lint() -> None:
    assert "lint" in {suite.name for suite in suites.thorough({"collectives"})}
    for module in ("sdk", "parallel", "algorithms"):
        assert "lint" not in {suite.name for suite in suites.thorough({module})}


def test_current_frameworks_are_reached_by_the_sdk_and_their_tests() -> None:
    current = {suite.name for suite in suites.OPT_IN["--current-frameworks"]}
    assert current and current <= {suite.name for suite in suites.thorough()}
    uses = reach.uses_of(reach.read("modules.txt"))
    for module in (reach.SDK, reach.TORCH_TESTS, reach.FRAMEWORK_TESTS):
        assert current <= {suite.name for suite in suites.thorough(reach.reached({module}, uses))}
    for module in ("schedule", reach.SLURM_TESTS):
        assert not current & {
            suite.name for suite in suites.thorough(reach.reached({module}, uses))
        }


def test_the_last_release_is_reached_by_the_formats_and_programs_that_meet_it() -> None:
    assert suites.OPT_IN["--upgrade"] == [
        suite for suite in suites.thorough() if suite.name == "upgrade"
    ]
    uses = reach.uses_of(reach.read("modules.txt"))
    for path in ("src/foundation/wire/codec.cpp", "tests/upgrade/test_upgrade.py"):
        module = reach.module_of(path)
        assert module and suites.UPGRADE.of & reach.reached({module}, uses)
    for module in ("ledger", "gateway", "agent"):
        assert suites.UPGRADE.of & reach.reached({module}, uses)
    for module in ("collectives", "console", reach.SDK):
        assert not suites.UPGRADE.of & reach.reached({module}, uses)


def test_lines_of_lists_name_modules() -> None:
    assert set(
        reach.modules_of_lines(
            ["host:        base | boost |", "src/foundation/objects/scrub.cpp", "# a comment", ""]
        )
    ) == {"host", "objects"}


def test_cold_modules_that_change_are_reached() -> None:
    text = reach.read(reach.MODULE_BUILD)
    listed = reach.COLD_MODULES.search(text)
    assert listed and {"contract", "entry"} <= set(listed[1].split()) <= set(
        reach.uses_of(reach.read("modules.txt"))
    )
    assert reach.modules_of_build(text, text) == set()
    assert reach.modules_of_build(
        text, text.replace("set(cold_modules contract", "set(cold_modules")
    ) == {"contract"}
    assert reach.modules_of_build(text, text.replace(" entry)", "\n  entry schedule)")) == {
        "schedule"
    }
    assert reach.modules_of_build(text, text.replace("TIMEOUT 300", "TIMEOUT 301")) is None
    assert reach.modules_of_build("", text) is None


def test_comments_and_layout_are_not_the_program() -> None:
    def same(before: str, after: str, path: str = "src/foundation/base/text.cpp") -> bool:
        return reach.program_of(path, before) == reach.program_of(path, after)

    assert same("int a = 1;  // one\n", "// The first.\nint a =\n    1;\n/* end */")
    assert not same("int a = 1;", "int a = 2;")
    assert not same("int ab;", "int a b;")
    assert not same('f("a // b");', 'f("a // c");'), "a text is not a comment"
    assert not same('f(R"(a // b)");', 'f(R"(a // c)");')
    assert not same("f('\\'', 1); // x\n", "f('\\'', 2);")
    assert same("n = 1'000'000; // x", "n = 1'000'000;")
    assert not same('f("a  b");', 'f("a b");'), "spaces of a text count"
    assert not same("# a comment\nx", "x", "sdk/python/setup.py"), "of C++ alone"


def test_an_unknown_baseline_leaves_nothing_out() -> None:
    assert reach.reached_since("0" * 40) is None
    assert reach.reached_since("--help") is None


# Thorough suites that may have no line in tests/thorough.txt, so that each change reaches them.
WITHOUT_BASELINE = dict.fromkeys(
    ("current", "keras", "frameworks"),
    "gigabytes of PyPI: run by ./yard test --current-frameworks",
)


def test_thorough_suites_have_a_baseline() -> None:
    names = {suite.name for suite in suites.thorough()}
    baselines = reach.baselines()
    assert baselines.keys() <= names, f"unknown suites in {reach.BASELINE}"
    assert WITHOUT_BASELINE.keys() <= names, "WITHOUT_BASELINE names an unknown suite"
    missing = names - baselines.keys() - WITHOUT_BASELINE.keys()
    assert not missing, (
        f"{sorted(missing)}: write the commit on which they passed into {reach.BASELINE}"
    )


def test_the_whole_table_is_known() -> None:
    uses = reach.uses_of(reach.read("modules.txt"))
    assert set().union(*uses.values()) <= set(uses), "modules.txt names a module without a line"
    outside = set(reach.FOLDERS.values())
    assert outside <= set(uses), "reach.FOLDERS names a module without a line"
    for folder in reach.FOLDERS:
        assert os.path.exists(os.path.join(reach.ROOT, folder)), f"{folder} does not exist"
    for suite, commit in reach.baselines().items():
        assert reach.git("cat-file", "-e", commit) is not None, (
            f"{reach.BASELINE}: {commit} of {suite} is not a commit of this repository"
        )
