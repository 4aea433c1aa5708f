"""Tests the c10d backend: every collective compared with gloo's results, DDP, subsets of ranks, and
the death of a rank."""

import datetime
import socket

import pytest
import torch

from tests.torch import ranks

CURRENT = int(torch.__version__.split(".")[0]) >= 2
each_transport = pytest.mark.parametrize("transport", ranks.TRANSPORTS)


@pytest.mark.parametrize("count", [3])
def test_every_collective_gives_what_gloo_gives(count: int) -> None:
    ours = ranks.start("collectives", count)
    gloos = ranks.start("collectives", count, backend="gloo")
    for rank, (mine, theirs) in enumerate(zip(ranks.finish(ours), ranks.finish(gloos))):
        assert mine.keys() == theirs.keys()
        for name in mine:
            assert mine[name] == theirs[name], f"rank {rank}: {name}"


@pytest.mark.parametrize("count", [1, 2, 4])
def test_operations_beyond_gloo(count: int) -> None:
    assert ranks.run("beyond_gloo", count) == ["good"] * count


def test_messages_of_many_tags_in_any_order() -> None:
    assert ranks.run("messages", 2) == ["good"] * 2


@each_transport
@pytest.mark.parametrize("count", [2, 3])
def test_messages_from_any_rank(count: int, transport: str) -> None:
    output = ranks.run("from_any", count, programs="any_source.py", transport=transport)
    assert output == ["good"] * count


@each_transport
def test_a_receive_from_any_rank_ends_with_the_timeout(transport: str) -> None:
    output, _ = ranks.run("no_rank_sends", 2, programs="any_source.py", transport=transport)
    assert "from any rank to rank 0, tag 4: no message within 3000 ms" in output, output


@each_transport
def test_a_sender_that_dies_is_named_by_a_receive_from_any_rank(transport: str) -> None:
    processes = ranks.start("sender_dies", 3, programs="any_source.py", transport=transport)
    assert processes[1].wait(ranks.SECONDS_MAX) == (9 if transport == "tcp" else -9)
    output, good = ranks.finish([processes[0], processes[2]])
    assert "from rank 1 to rank 0" in output and good == "good", output


@each_transport
def test_a_late_peer_does_not_block_others_from_the_store(transport: str) -> None:
    port = socket.create_server(("127.0.0.1", 0))
    meet_at = f"tcp://127.0.0.1:{port.getsockname()[1]}"
    port.close()
    output = ranks.run(
        "late_peer", 3, programs="any_source.py", transport=transport, MEET_AT=meet_at
    )
    assert output == ["good"] * 3


@each_transport
@pytest.mark.parametrize("program", ["everything", "wide_blocks"])
def test_messages_of_more_than_4_gib(program: str, transport: str) -> None:
    before = ranks.loopback_bytes()
    assert ranks.run(program, 2, programs="large.py", transport=transport) == ["good"] * 2
    if transport == "tcp":
        assert ranks.loopback_bytes() - before > 7 << 30, "the messages did not use TCP"


def close(one: list[float], other: list[float], tolerance: float) -> bool:
    return max(abs(a - b) for a, b in zip(one, other)) <= tolerance


@pytest.mark.parametrize("hook, tolerance", [("", 1e-5), ("fp16", 1e-2), ("zero", 1e-5)])
def test_ddp_trains_as_with_gloo_and_equal_on_all_ranks(hook: str, tolerance: float) -> None:
    ours = ranks.start("ddp", 3, arguments=[hook])
    gloos = ranks.start("ddp", 3, backend="gloo", arguments=[hook])
    mine, theirs = ranks.finish(ours), ranks.finish(gloos)
    assert len({rank["digest"] for rank in mine}) == 1, "bit for bit"
    assert close(mine[0]["weights"], theirs[0]["weights"], tolerance)


def test_sparse_gradients_train_as_with_gloo_and_equal_on_all_ranks() -> None:
    ours, gloos = ranks.start("sparse", 3), ranks.start("sparse", 3, backend="gloo")
    mine, theirs = ranks.finish(ours), ranks.finish(gloos)
    assert len({rank["digest"] for rank in mine}) == 1, "bit for bit"
    assert close(mine[0]["weights"], theirs[0]["weights"], 1e-5)


def test_other_types_and_sizes_are_refused_with_an_explanation() -> None:
    assert ranks.run("refusals", 2) == ["good"] * 2


def test_every_run_gives_the_same_bits() -> None:
    runs = [ranks.start("ddp", 2, TRAINYARD_DETERMINISTIC="1") for _ in range(2)]
    assert len({rank["digest"] for run in runs for rank in ranks.finish(run)}) == 1


def test_tensors_reduced_repeatedly_are_shared_in_place() -> None:
    # Ours and the other rank's, of torch's own memory and never of numpy's. When the tensor is
    # gone, only the other's is mapped until something else takes its place.
    assert ranks.run("in_place", 2) == [[2, 2, 1]] * 2
    assert ranks.run("in_place", 2, TRAINYARD_IN_PLACE="0") == [[0, 0, 0]] * 2


def test_a_communication_hook_may_start_collectives_while_one_ends() -> None:
    results = ranks.run("ddp", 2, arguments=["powersgd"])
    assert results[0]["digest"] == results[1]["digest"]


@each_transport
def test_encrypted_on_several_sockets(transport: str) -> None:
    variables = {
        "TRAINYARD_ENCRYPT": "1",
        "TRAINYARD_SECRET": "between us",
        "TRAINYARD_SOCKETS": "2",
    }
    assert ranks.run("beyond_gloo", 3, transport=transport, **variables) == ["good"] * 3
    with pytest.raises(ranks.Ended, match="TRAINYARD_SECRET"):
        ranks.run("beyond_gloo", 2, transport=transport, TRAINYARD_ENCRYPT="1")


@pytest.mark.parametrize("value", ["", "0", "false", "False", "NO", "off", "1", "yes", "ture"])
def test_a_switch_is_read_as_in_horovod(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    from trainyard.torch import _backend

    def create() -> None:
        store = torch.distributed.HashStore()
        _backend.create(store, 0, 1, datetime.timedelta(seconds=10), [])

    monkeypatch.setenv("TRAINYARD_ENCRYPT", value)
    monkeypatch.delenv("TRAINYARD_SECRET", raising=False)
    if value in ("1", "yes", "ture"):  # what is not understood leaves no run open
        with pytest.raises(RuntimeError, match="TRAINYARD_ENCRYPT needs TRAINYARD_SECRET"):
            create()
        monkeypatch.setenv("TRAINYARD_SECRET", "between us")
    create()


@pytest.mark.parametrize(
    "operation, tensor",
    [
        ("all_reduce", "Float[1000]"),
        ("broadcast", "Float[1000]"),
        ("all_gather", "Float[3000]"),
        ("all_to_all", "Float[3]"),
    ],
)
def test_a_rank_that_dies_is_named_with_the_tensor(operation: str, tensor: str) -> None:
    processes = ranks.start("one_dies", 3, arguments=[operation])
    assert processes[1].wait(ranks.SECONDS_MAX) == -9
    for output in ranks.finish([processes[0], processes[2]]):
        assert "rank 1" in output and f" of '{tensor}, operation " in output, output


def test_a_rank_that_never_comes_is_named() -> None:
    processes = ranks.start("one_is_missing", 3, only=(0, 1))
    for output in ranks.finish(processes):
        assert "rank 2 did not join" in output, output


def test_another_torch_is_refused_with_an_explanation() -> None:
    import trainyard.torch

    trainyard.torch._check_torch("2.4.0+cpu", "2.4.0+cu121")  # one source, one binary interface
    with pytest.raises(
        ImportError,
        match=r"compiled against torch 2\.3\.1, but the installed torch is 2\.4\.0.*pip install",
    ):
        trainyard.torch._check_torch("2.3.1", "2.4.0")


@pytest.mark.skipif(not CURRENT, reason="torch 1.13 refuses to run FSDP without CUDA")
@pytest.mark.parametrize("program", ["fsdp", "fsdp2"])
def test_sharded_training_equals_ddp(program: str) -> None:
    sharded, whole = ranks.start(program, 2), ranks.start("ddp", 2)
    mine, theirs = ranks.finish(sharded), ranks.finish(whole)
    assert mine[0]["digest"] == mine[1]["digest"]
    assert close(mine[0]["weights"], theirs[0]["weights"], 1e-5)
