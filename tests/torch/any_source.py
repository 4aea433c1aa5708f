"""Has the programs of the ranks in the tests of receives from any source. Run as: any_source.py
NAME; the last line printed is the result."""

import faulthandler
import json
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

from tests.torch.programs import RANK, WORLD, init


def from_any() -> str:
    """Rank 0 receives without a source: by tag, in the order of each sender, from all senders, and
    next to receives that name a source."""
    init()
    senders = set(range(1, WORLD))
    each_sends = 6  # what fits on its way, with the message before: a send that does not waits
    if RANK == 0:
        first = [torch.zeros(3) for _ in senders]
        came = {}
        for tensor in first:
            source = dist.recv(tensor, tag=1)
            came[source] = tensor.tolist()
        assert came == {rank: [float(rank)] * 3 for rank in senders}, came
        dist.barrier()  # nothing else is sent until now, and so none is kept
        dist.barrier()  # now all of the next messages are on their way
        order: list[int] = []
        seen = dict.fromkeys(senders, 0)
        for _ in range(each_sends * len(senders)):
            tensor = torch.zeros(1, dtype=torch.int64)
            source = dist.recv(tensor, tag=2)
            assert tensor.item() == seen[source], "messages of one rank stay in order"
            seen[source] += 1
            order.append(source)
        half = order[: len(order) // 2]
        assert min(half.count(rank) for rank in senders) >= each_sends // 2 - 1, order
        # a message that arrived first, with another tag, was kept
        sources = sorted(dist.recv(torch.zeros(2, 2), tag=3) for _ in senders)
        assert sources == sorted(senders), sources
        # one that says its source, posted before and after one that does not
        named, either, columns = torch.zeros(1), torch.zeros(1), torch.zeros(2, 3).t()
        works = [dist.irecv(named, 1, tag=5), dist.irecv(either, tag=6), dist.irecv(columns, tag=7)]
        dist.barrier()
        for work in works:
            work.wait()
        assert [work._source_rank() for work in works] == [1, WORLD - 1, 1]
        assert (named.item(), either.item()) == (51.0, 60.0 + WORLD - 1), (named, either)
        assert columns.tolist() == [[7.0, 7.0]] * 3
        # of a different size from the tensor: that receive alone fails, and names the sender
        try:
            dist.recv(torch.zeros(5), tag=8)
            raise AssertionError("this must be refused")
        except RuntimeError as failure:
            assert "from rank 1" in str(failure) and "8 bytes" in str(failure), failure
        assert dist.recv(torch.zeros(2), tag=9) == 1
        dist.barrier()
    else:
        dist.send(torch.full((3,), float(RANK)), 0, tag=1)
        dist.barrier()
        if RANK == 1:
            dist.send(torch.zeros(2, 2), 0, tag=3)
        for number in range(each_sends):
            dist.send(torch.tensor([number]), 0, tag=2)
        dist.barrier()
        if RANK > 1:
            dist.send(torch.zeros(2, 2), 0, tag=3)
        dist.barrier()
        if RANK == WORLD - 1:
            dist.send(torch.full((1,), 60.0 + RANK), 0, tag=6)
        if RANK == 1:
            dist.send(torch.full((3, 2), 7.0), 0, tag=7)
            dist.send(torch.full((1,), 51.0), 0, tag=5)
            dist.send(torch.zeros(2), 0, tag=8)
            dist.send(torch.zeros(2), 0, tag=9)
        dist.barrier()
    dist.barrier()
    return "good"


def no_rank_sends() -> str:
    """A receive from any source times out without side effects."""
    init(timeout=timedelta(seconds=3))
    store = dist.distributed_c10d._get_default_store()
    output = ""
    if RANK == 0:
        try:
            dist.recv(torch.zeros(1), tag=4)
        except RuntimeError as failure:
            output = str(failure)
        store.set("over", "")
        assert dist.recv(torch.zeros(1), tag=4) == 1
    else:
        store.wait(["over"], timedelta(seconds=50))
        dist.send(torch.ones(1), 0, tag=4)
    dist.barrier()
    return output


def sender_dies() -> str:
    """Rank 1 is killed after a message; the waiting receive fails and names it, and the next one
    receives from the others."""
    init(timeout=timedelta(seconds=60))
    if RANK == 1:
        dist.send(torch.ones(1), 0)
        os.kill(os.getpid(), 9)
        os._exit(9)  # the first process of a PID namespace does not receive its own signal
    if RANK == 2:
        dist.recv(torch.zeros(1), 0)  # until rank 0 has heard of it
        dist.send(torch.ones(1), 0)
        return "good"
    assert dist.recv(torch.zeros(1)) == 1
    try:
        dist.recv(torch.zeros(1))
        return "no rank died"
    except RuntimeError as failure:
        output = str(failure)
    dist.send(torch.ones(1), 2)
    assert dist.recv(torch.zeros(1)) == 2
    return output


def late_peer() -> str:
    """A channel that waits for a late rank does not block other channels from the store: rank 1
    sends only after rank 2 has received from rank 0, whose receive from rank 1 was posted
    before."""
    init()
    if RANK == 0:
        late = torch.zeros(1)
        work = dist.irecv(late, 1)
        for _ in range(20):
            dist.barrier()  # until it waits for rank 1
        dist.send(torch.ones(1), 2)
        work.wait()
    else:
        for _ in range(20):
            dist.barrier()
        dist.recv(torch.zeros(1), 2 if RANK == 1 else 0)
        dist.send(torch.ones(1), 0 if RANK == 1 else 1)
    dist.barrier()
    return "good"


if __name__ == "__main__":
    faulthandler.dump_traceback_later(60, exit=True)  # a rank that hangs says where
    print(json.dumps(globals()[sys.argv[1]]()))
