"""Runs as an elastic script of a user. Trains until a file appears: horovod_elastic.py FILE"""

import hashlib
import os
import sys
import time

import horovod.torch as hvd
import torch

stop = sys.argv[1]
hvd.init()
torch.manual_seed(hvd.rank())
net = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, net.named_parameters())
sampler = hvd.elastic.ElasticSampler(list(range(100_000)))
state = hvd.elastic.TorchState(net, optimizer, sampler=sampler, step=0, stopped=False)


def say(*words: object) -> None:
    print(*words, "rank", hvd.rank(), "of", hvd.size(), "pid", os.getpid(), flush=True)


state.register_reset_callbacks([lambda: say("resumed", state.step)])


@hvd.elastic.run
def train(state: hvd.elastic.TorchState) -> None:
    say("begin", state.step)
    order = list(state.sampler)
    number = 0
    while not state.stopped:
        optimizer.zero_grad()
        indices = state.sampler.get_indices(number, 4)
        net(torch.tensor(indices).unsqueeze(1).float().expand(-1, 16) / 100_000).pow(
            2
        ).sum().backward()
        optimizer.step()
        state.sampler.record_batch(number, 4)
        number += 1
        assert number * 4 <= len(order)
        state.step += 1
        time.sleep(0.01)
        if state.step % 5 == 0:
            state.stopped = hvd.broadcast_object(os.path.exists(stop), 0, "stop")
            state.commit()
            say("committed", state.step)


train(state)
weights = hashlib.sha256(
    b"".join(p.detach().numpy().tobytes() for p in net.parameters())
).hexdigest()
done = hvd.allgather_object(len(state.sampler.processed_indices))
say("final", state.step, weights, sum(done))
