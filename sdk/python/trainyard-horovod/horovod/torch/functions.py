"""Broadcasts and gathers parameters, optimizer states and objects."""

from __future__ import annotations

import collections
import io
from collections.abc import Iterable, Mapping
from typing import Any, Callable

import torch

from horovod.common import basics, objects
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch.mpi_ops import allgather_async, broadcast_, broadcast_async_, synchronize

Object = Any  # any object that can be pickled
Nested = Any  # nested dictionaries, lists and tuples, and their leaves


def broadcast_parameters(
    params: Mapping[str, Any] | Iterable[tuple[str, Any]] | Iterable[torch.Tensor],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Overwrites the parameters with those of the root rank. `params` is a state_dict, or lists
    pairs of name and tensor, or tensors."""
    if isinstance(params, dict):
        pairs = sorted(params.items())
    else:
        pairs = [
            each if isinstance(each, tuple) else (f"parameter.{number}", each)
            for number, each in enumerate(params)
        ]
    tensors = [(name, tensor.data) for name, tensor in pairs if isinstance(tensor, torch.Tensor)]
    others = {
        name: value
        for name, value in pairs
        if not isinstance(value, torch.Tensor) and value is not None
    }
    if others:
        raise ValueError(
            "broadcast_parameters: params has values that are not tensors: "
            f"{', '.join(map(str, others))}; use broadcast_object for these"
        )
    handles = [
        broadcast_async_(tensor, root_rank, f"broadcast_parameters.{name}", process_set)
        for name, tensor in tensors
    ]
    for handle in handles:
        synchronize(handle)


def broadcast_object(
    obj: Object,
    root_rank: int = 0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Object:
    """Returns the root rank's `obj` on all ranks; other ranks may pass any object."""
    name = name or "broadcast_object"
    is_root = basics.rank() == root_rank
    pickled = bytearray(objects.dumps(obj)) if is_root else bytearray()
    length = torch.tensor([len(pickled)], dtype=torch.int64)
    broadcast_(length, root_rank, name + ".length", process_set)
    if is_root:
        data = torch.frombuffer(pickled, dtype=torch.uint8)
    else:
        data = torch.empty(int(length), dtype=torch.uint8)
    broadcast_(data, root_rank, name + ".data", process_set)
    return obj if is_root else objects.loads(data.numpy().tobytes())


def broadcast_object_fn(
    root_rank: int = 0,
    session: object = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Callable[[Object], Object]:
    """Returns broadcast_object() as a function of the object alone. `session` is ignored."""
    return lambda obj: broadcast_object(obj, root_rank, name, process_set)


def allgather_object(
    obj: Object, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Object]:
    """Returns a list with the object of each rank, in the order of ranks."""
    name = name or "allgather_object"
    data = torch.frombuffer(bytearray(objects.dumps(obj)), dtype=torch.uint8)
    lengths = synchronize(
        allgather_async(
            torch.tensor([len(data)], dtype=torch.int64), name + ".lengths", process_set
        )
    ).tolist()
    everything = io.BytesIO(
        synchronize(allgather_async(data, name + ".data", process_set)).numpy().tobytes()
    )
    return [objects.loads(everything.read(length)) for length in lengths]


def _initialise_state(optimizer: torch.optim.Optimizer) -> None:
    """Initialises an optimizer's state by a step with gradients of zero, then restores parameters
    and gradients. A parameter that had no gradient keeps one of zeros, as scripts of Horovod
    expect."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    before = [(parameter.detach().clone(), parameter.grad) for parameter in parameters]
    # SparseAdam rejects dense gradients, and sparse ones without any row: it gets the first row.
    sparse = isinstance(optimizer, torch.optim.SparseAdam)
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
            if sparse:
                row = torch.zeros(1, 1, dtype=torch.int64, device=parameter.device)
                parameter.grad = torch.sparse_coo_tensor(row, parameter.grad[:1], parameter.shape)
    # The step of the user's own optimizer class: DistributedOptimizer's would average the zeros.
    step = getattr(optimizer, "_step_alone", None) or optimizer.step
    step()
    with torch.no_grad():
        for parameter, (value, gradient) in zip(parameters, before):
            parameter.copy_(value)
            if gradient is not None:
                parameter.grad = gradient


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer,
    root_rank: int,
    model: torch.nn.Module | None = None,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Overwrites the optimizer's state and options with the root's; other ranks need no state yet.
    `model` is accepted as in Horovod and ignored."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError(
            "broadcast_optimizer_state: the state of torch.optim.LBFGS cannot be broadcast; use "
            "another optimizer"
        )
    if not optimizer.state_dict()["state"]:
        _initialise_state(optimizer)
    state = optimizer.state_dict()
    # The root's state may have another structure (it has trained, this rank has not). The root
    # sends the structure first, with a placeholder for each tensor, then the tensors.
    tensors = collections.OrderedDict()

    def without_tensors(value: Nested, path: str) -> Nested:
        if isinstance(value, torch.Tensor):
            tensors[path] = value
            return _Tensor(path, tuple(value.shape), value.dtype)
        if isinstance(value, dict):
            return {key: without_tensors(each, f"{path}.{key}") for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(
                without_tensors(each, f"{path}.{number}") for number, each in enumerate(value)
            )
        return value

    structure = broadcast_object(
        without_tensors(state, "optimizer"), root_rank, "broadcast_optimizer_state", process_set
    )
    is_root = basics.rank() == root_rank
    handles = []

    def with_tensors(value: Nested) -> Nested:
        if isinstance(value, _Tensor):
            tensor = tensors.get(value.path)
            if tensor is None or tuple(tensor.shape) != value.shape or tensor.dtype != value.dtype:
                tensor = torch.empty(value.shape, dtype=value.dtype)
            elif not is_root:
                tensor = tensor.clone()
            handles.append(
                broadcast_async_(
                    tensor, root_rank, f"broadcast_optimizer_state.{value.path}", process_set
                )
            )
            return tensor
        if isinstance(value, dict):
            return {key: with_tensors(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(with_tensors(each) for each in value)
        return value

    received = with_tensors(structure)
    for handle in handles:
        synchronize(handle)
    if not is_root:
        optimizer.load_state_dict(received)


class _Tensor:
    """Stands for a tensor in a pickled object."""

    def __init__(self, path: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        self.path, self.shape, self.dtype = path, shape, dtype
