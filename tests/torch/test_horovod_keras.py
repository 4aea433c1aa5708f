"""Tests horovod.tensorflow and horovod.keras with the current TensorFlow, if one is installed
(./yard test --current-frameworks)."""

import importlib.util
from typing import Any

import pytest

from tests.torch import ranks

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="no TensorFlow here"
)


def run(program: str, count: int, *arguments: str) -> list[Any]:
    return ranks.run(program, count, programs="horovod_keras_programs.py", arguments=arguments)


@pytest.mark.parametrize("program", ["operations", "states", "data_parallel"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_programs_of_scripts_run(count: int, program: str) -> None:
    assert run(program, count) == ["good"] * count


@pytest.mark.parametrize(
    "program", ["semantics", "duplicates", "sparse_gradients", "absent_states"]
)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_semantics_equal_those_of_horovods_tests(count: int, program: str) -> None:
    assert run(program, count) == ["good"] * count


@pytest.mark.parametrize("count", [1, 2])
def test_priorities_reach_the_engine(count: int) -> None:
    programs = "horovod_keras_priorities.py"
    assert ranks.run("priorities", count, programs=programs) == ["good"] * count


@pytest.mark.parametrize("count", [1, 2, 3])
def test_compression_errors_are_sent_later(count: int) -> None:
    for left in run("compressed", count):
        assert len(left) == 4 and all(0 < part < 1e-2 for part in left), left


@pytest.mark.parametrize("library", ["hvd", "sdp"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_tape_trains_as_one_process_with_the_whole_batch(count: int, library: str) -> None:
    assert max(run("tape", count, library)) < 1e-5


@pytest.mark.parametrize("passes", ["1", "2"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_fit_trains_as_one_process_with_the_whole_batch(count: int, passes: str) -> None:
    one, *others = run("fit", count, passes)
    for other in others:
        assert one["digest"] == other["digest"] and one["loss"] == other["loss"], (
            "bit for bit, and averaged"
        )
    assert one["rate"] == pytest.approx(0.05, rel=1e-6) and one["apart"] < 1e-5
