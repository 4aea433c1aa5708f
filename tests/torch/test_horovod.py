"""Tests horovod.torch, with the behaviour that scripts of Horovod rely on."""

import importlib
import inspect
import itertools
import json
import pathlib
from typing import Any

import pytest

from tests.torch import ranks

each_transport = pytest.mark.parametrize("transport", ranks.TRANSPORTS)


def run(program: str, count: int, *arguments: str, **more: Any) -> list[Any]:
    return ranks.run(program, count, programs="horovod_programs.py", arguments=arguments, **more)


@pytest.mark.parametrize(
    "program, count",
    [
        *itertools.product(["operations", "gradients", "adasum", "states"], [1, 2, 3]),
        *itertools.product(["refusals", "guards"], [2, 3]),
        ("sets", 4),
    ],
)
def test_programs_of_scripts_run(program: str, count: int) -> None:
    assert run(program, count) == ["good"] * count


@pytest.mark.parametrize("count", [1, 2, 3])
def test_semantics_equal_those_of_horovods_tests(count: int) -> None:
    assert ranks.run("everything", count, programs="horovod_semantics.py") == ["good"] * count


@pytest.mark.parametrize("count", [1, 2, 3])
def test_ranks_with_fewer_batches_join(count: int) -> None:
    assert run("uneven", count) == [[count - 1, count - 1]] * count


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_optimizer_trains_as_one_process_with_the_whole_batch(count: int) -> None:
    for output in run("optimizers", count):
        for how, apart in output.items():
            assert apart < (1e-2 if how == "fp16" else 1e-5), f"{how}: {apart}"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_compression_errors_are_sent_later(count: int) -> None:
    for output in run("compressed", count):
        assert all(0 < share < 1e-2 for share in output.values()), output


def test_autotuning_tries_settings(tmp_path: pathlib.Path) -> None:
    for cycle_ms, fusion_bytes, bytes_per_second in run(
        "tuned", 2, HOROVOD_AUTOTUNE="1", HOROVOD_AUTOTUNE_LOG=str(tmp_path / "tries")
    ):
        assert cycle_ms > 0 and fusion_bytes >= 1 << 16 and bytes_per_second > 0


@pytest.mark.parametrize("count", [1, 2, 3])
def test_batches_are_normalised_over_all_ranks(count: int) -> None:
    assert max(run("batch_norm", count)) < 1e-4


def test_a_timeline_shows_each_tensor(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "timeline.json")
    run("timeline", 2, path)
    with open(path, encoding="utf-8") as file:
        events = json.load(file)
    names = {event["name"] for event in events}
    assert {"NEGOTIATE_ALLREDUCE", "TRAINYARD_ALLREDUCE", "CYCLE_START"} <= names, names
    assert any(
        event["args"]["name"] == "allreduce.layer.weight"
        for event in events
        if event["name"] == "thread_name"
    )


def test_each_rank_writes_its_timeline_into_a_directory(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "timelines"
    run("again", 2, TRAINYARD_TIMELINES=str(folder))
    assert {path.name for path in folder.iterdir()} == {
        f"rank-{rank}{again}.json" for rank in range(2) for again in ("", "-2", "-3")
    }
    for path in folder.iterdir():
        head = path.read_text(encoding="utf-8").splitlines()[1]
        assert "start_time_since_epoch_in_micros" in head, head


def test_ranks_meet_again_after_a_shutdown() -> None:
    assert run("again", 2) == [[2.0, 2.0, 2.0]] * 2


def test_a_rank_that_dies_is_named_with_the_tensor() -> None:
    processes = ranks.start("one_dies", 3, programs="horovod_programs.py")
    assert processes[1].wait(ranks.SECONDS_MAX) == -9
    for output in ranks.finish([processes[0], processes[2]]):
        assert "rank 1" in output, output


def test_a_stall_is_reported_with_rank_and_tensor_and_ends() -> None:
    processes = ranks.start(
        "one_stalls",
        2,
        programs="horovod_programs.py",
        HOROVOD_STALL_CHECK_TIME_SECONDS="0.3",
        HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="1",
    )
    output = ranks.finish(processes)
    assert "layer.weight" in output[0] and "rank 1" in output[0], output
    reports = "".join(ranks.read(process, "err") for process in processes)
    assert "layer.weight" in reports, reports


@each_transport
def test_encrypted_on_several_sockets(transport: str) -> None:
    variables = {
        "TRAINYARD_ENCRYPT": "1",
        "TRAINYARD_SECRET": "between us",
        "TRAINYARD_SOCKETS": "2",
    }
    assert run("operations", 3, transport=transport, **variables) == ["good"] * 3
    with pytest.raises(ranks.Ended, match="TRAINYARD_ENCRYPT needs TRAINYARD_SECRET"):
        run("operations", 2, transport=transport, TRAINYARD_ENCRYPT="1")


@each_transport
def test_messages_of_more_than_4_gib(transport: str) -> None:
    before = ranks.loopback_bytes()
    assert ranks.run("by_name", 2, programs="large.py", transport=transport) == ["good"] * 2
    if transport == "tcp":
        assert ranks.loopback_bytes() - before > 7 << 30, "the messages did not use TCP"


def test_ranks_that_disagree_about_their_connections_do_not_meet() -> None:
    both = {"TRAINYARD_SECRET": "between us", "HOROVOD_START_TIMEOUT": "3"}
    output = run("one_differs", 2, "TRAINYARD_SOCKETS", "2", **both)
    assert any("sockets" in words for words in output), output
    run("one_differs", 2, "TRAINYARD_ENCRYPT", "1", **both)


def test_mixed_installations_are_refused_with_an_explanation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from trainyard import _declarations, _library

    with pytest.raises(
        ImportError, match=r"has version 99 .* needs version \d+.*pip install --force-reinstall"
    ):
        _library._check_version(99)
    # As with the library of an older checkout.
    monkeypatch.setitem(_declarations.FUNCTIONS, "trainyard_of_tomorrow", (None, []))
    with pytest.raises(ImportError, match="lacks a function .*trainyard_of_tomorrow"):
        _library.load()


def test_every_name_of_horovod_is_there() -> None:
    import horovod
    import horovod.torch as hvd

    names = """
        init shutdown is_initialized start_timeline stop_timeline size local_size cross_size rank
        local_rank cross_rank is_homogeneous mpi_threads_supported mpi_enabled mpi_built
        gloo_enabled gloo_built nccl_built ddl_built ccl_built cuda_built rocm_built ProcessSet
        global_process_set add_process_set remove_process_set Average Sum Adasum Min Max Product
        HorovodInternalError Compression allreduce allreduce_ allreduce_async allreduce_async_
        grouped_allreduce grouped_allreduce_ grouped_allreduce_async grouped_allreduce_async_
        sparse_allreduce_async allgather allgather_async grouped_allgather grouped_allgather_async
        broadcast broadcast_ broadcast_async broadcast_async_ alltoall alltoall_async reducescatter
        reducescatter_async grouped_reducescatter grouped_reducescatter_async join barrier poll
        synchronize allgather_object broadcast_object broadcast_parameters broadcast_optimizer_state
        SyncBatchNorm DistributedOptimizer elastic
    """.split()
    assert [name for name in names if not hasattr(hvd, name)] == []
    assert [
        name
        for name in ("run", "State", "ObjectState", "TorchState", "ElasticSampler")
        if not hasattr(hvd.elastic, name)
    ] == []
    assert horovod.__version__.startswith("0.28.1")


# Where scripts look for it: the reference's own modules, and what they pass by name.
@pytest.mark.parametrize(
    "place, names",
    [
        ("horovod.torch.init", "comm process_sets"),
        ("horovod.torch.start_timeline", "file_path mark_cycles"),
        (
            "horovod.torch.allreduce",
            "tensor average name compression op prescale_factor postscale_factor process_set",
        ),
        (
            "horovod.torch.allreduce_async_",
            "tensor average name op prescale_factor postscale_factor process_set",
        ),
        (
            "horovod.torch.grouped_allreduce",
            "tensors average name compression op prescale_factor postscale_factor process_set",
        ),
        ("horovod.torch.sparse_allreduce_async", "tensor name op process_set"),
        ("horovod.torch.allgather", "tensor name process_set"),
        ("horovod.torch.broadcast_", "tensor root_rank name process_set"),
        ("horovod.torch.alltoall", "tensor splits name process_set"),
        (
            "horovod.torch.reducescatter",
            "tensor name compression op process_set prescale_factor postscale_factor",
        ),
        ("horovod.torch.join", "device"),
        ("horovod.torch.barrier", "process_set"),
        ("horovod.torch.broadcast_parameters", "params root_rank"),
        ("horovod.torch.broadcast_optimizer_state", "optimizer root_rank"),
        ("horovod.torch.broadcast_object", "obj root_rank name process_set"),
        ("horovod.torch.allgather_object", "obj name process_set"),
        (
            "horovod.torch.DistributedOptimizer",
            (
                "optimizer named_parameters compression backward_passes_per_step op"
                " gradient_predivide_factor num_groups groups sparse_as_dense process_set"
            ),
        ),
        ("horovod.torch.elastic.run", "func"),
        ("horovod.torch.elastic.TorchState", "model optimizer"),
        ("horovod.torch.elastic.ElasticSampler", "dataset shuffle seed"),
        ("horovod.torch.elastic.state.TorchState", "model optimizer"),
        ("horovod.torch.elastic.sampler.ElasticSampler", "dataset shuffle seed"),
        ("horovod.torch.mpi_ops.synchronize", "handle"),
        ("horovod.torch.functions.broadcast_object", "obj root_rank name process_set"),
        ("horovod.torch.optimizer.DistributedOptimizer", "optimizer named_parameters"),
        (
            "horovod.torch.sync_batch_norm.SyncBatchNorm",
            "num_features eps momentum affine track_running_stats",
        ),
        ("horovod.torch.compression.Compression", ""),
        ("horovod.common.exceptions.HorovodInternalError", ""),
        ("horovod.common.exceptions.HostsUpdatedInterrupt", "skip_sync"),
        ("horovod.common.elastic.State", "bcast_object get_rank"),
        ("horovod.common.elastic.ObjectState", "bcast_object get_rank"),
        ("horovod.run", ""),
        (
            "horovod.runner.run",
            (
                "func args kwargs np min_np max_np slots reset_limit hosts hostfile start_timeout"
                " ssh_port ssh_identity_file output_filename verbose use_gloo use_mpi"
                " network_interfaces executable"
            ),
        ),
    ],
)
def test_the_names_and_parameters_that_scripts_use_exist(place: str, names: str) -> None:
    module, name = place.rsplit(".", 1)
    found = getattr(importlib.import_module(module), name)
    assert set(names.split()) - set(inspect.signature(found).parameters if names else ()) == set()
