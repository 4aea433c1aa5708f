"""Optimizers that reduce gradients over ranks before they step."""

from __future__ import annotations

import collections
import contextlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

import torch

from horovod.common.basics import generation, is_elastic
from horovod.common.compression import AnyCompressor
from horovod.common.operations import Reduction
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch.compression import Compression
from horovod.torch.mpi_ops import (
    Adasum,
    Average,
    Sum,
    allreduce_async_,
    grouped_allreduce_async_,
    size,
    sparse_allreduce_async,
    synchronize,
)

# A number of groups, or their parameters.
Groups = Optional[Union[int, list[list[torch.Tensor]]]]
# (handle, context for decompress, (group, position in it)); no handle: not started yet.
Started = tuple[Optional[int], Any, Optional[tuple[int, int]]]


def _all_parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _name_them(
    optimizer: torch.optim.Optimizer, named_parameters: Iterable[tuple[str, torch.Tensor]] | None
) -> dict[torch.Tensor, str]:
    """Returns the name of each parameter, by which ranks match tensors: names must be equal on all
    ranks."""
    named = list(named_parameters) if named_parameters is not None else None
    if not named:
        return {
            parameter: f"allreduce.noname.{i}.{j}"
            for i, group in enumerate(optimizer.param_groups)
            for j, parameter in enumerate(group["params"])
        }
    if any(not isinstance(each, tuple) for each in named):
        raise ValueError(
            "named_parameters should be a sequence of tuples (name, parameter), usually produced by"
            " model.named_parameters()."
        )
    counts = collections.Counter(name for name, _ in named)
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        raise ValueError(
            "Parameter names in named_parameters must be unique. Found duplicates:"
            f" {', '.join(twice)}"
        )
    names = {parameter: name for name, parameter in named}
    unnamed = [parameter for parameter in _all_parameters(optimizer) if parameter not in names]
    if unnamed:
        raise ValueError(
            "named_parameters was specified, but one or more model parameters were not named."
            f" Python object ids: {', '.join(str(id(p)) for p in unnamed)}"
        )
    return names


if TYPE_CHECKING:
    from torch.optim import Optimizer as _Optimizer
else:
    _Optimizer = object  # _instead_of adds the class of the user's optimizer as a base


class _Distributed(_Optimizer):
    """The base of both kinds, which replace an optimizer and keep all of its attributes."""

    @classmethod
    def _instead_of(
        cls, optimizer: torch.optim.Optimizer, names: dict[torch.Tensor, str], **settings: Any
    ) -> _Distributed:
        made: type[_Distributed] = type(
            optimizer.__class__.__name__,
            (cls, optimizer.__class__),
            {"__module__": optimizer.__class__.__module__},
        )
        self = made.__new__(made)
        self.__dict__.update(optimizer.__dict__)
        self.__dict__.pop("step", None)  # a learning rate scheduler may have wrapped it
        self._parameter_names = names
        self._begin(**settings)
        return self

    @property
    def _step_alone(self) -> Callable[..., Any]:
        return super().step


class _DistributedOptimizer(_Distributed):
    """Reduces each gradient as soon as the backward pass has made it."""

    def _begin(
        self,
        compression: AnyCompressor,
        backward_passes_per_step: int,
        op: Reduction,
        gradient_predivide_factor: float,
        groups: Groups,
        sparse_as_dense: bool,
        process_set: ProcessSet,
        first_layers_first: bool,
    ) -> None:
        self._compression = compression
        self._op = op
        self._predivide = gradient_predivide_factor
        self._sparse_as_dense = sparse_as_dense
        self._process_set = process_set
        self._first_layers_first = first_layers_first
        self.backward_passes_per_step = backward_passes_per_step
        self._handles: dict[torch.Tensor, Started] = {}
        self._passes_left = dict.fromkeys(_all_parameters(self), backward_passes_per_step)
        self._synchronized = False
        self._should_synchronize = True
        self._group_of: dict[torch.Tensor, tuple[int, list[torch.Tensor]]] = {}
        self._accumulators: list[Any] = []  # torch's nodes of a graph
        self._hooked: set[torch.Tensor] = set()
        # The number of sparse dimensions (0: dense) of each parameter that has had a gradient on
        # some rank. Equal on all ranks.
        self._sparse_dims: dict[torch.Tensor, int] = {}
        self._position: dict[torch.Tensor, int] = {}  # of a parameter among all
        self._sparse_dims_of = -1  # the generation of ranks that agreed on them
        for number, members in enumerate(self._grouped(groups)):
            for parameter in members:
                self._group_of[parameter] = (number, members)
        # group number -> parameters of this step: those with a computed gradient, and those with a
        # sparse gradient, which is reduced separately
        self._ready: dict[int, set[torch.Tensor]] = collections.defaultdict(set)
        self._separate: dict[int, set[torch.Tensor]] = collections.defaultdict(set)
        if process_set.included() and (size() > 1 or is_elastic()):
            self._hook()

    def _grouped(self, groups: Groups) -> list[list[torch.Tensor]]:
        trainable = [parameter for parameter in _all_parameters(self) if parameter.requires_grad]
        if groups is None:
            return []
        if isinstance(groups, int):
            if groups <= 0:
                return []
            each = -(-len(trainable) // groups)
            return [trainable[begin : begin + each] for begin in range(0, len(trainable), each)]
        known, seen = set(trainable), set()
        for group in groups:
            for parameter in group:
                if not isinstance(parameter, torch.Tensor):
                    raise ValueError("groups must be lists of lists of parameters")
                if parameter in seen:
                    raise ValueError("a parameter may be in only one of the groups")
                seen.add(parameter)
        return [[parameter for parameter in group if parameter in known] for group in groups]

    def _hook(self) -> None:
        for parameter in _all_parameters(self):
            if parameter.requires_grad and parameter not in self._hooked:
                self._hooked.add(parameter)
                # The node that accumulates into .grad: its hooks run when the gradient is complete.
                # The reference keeps the node alive; otherwise torch would make another one without
                # hooks.
                accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
                accumulator.register_hook(self._make_hook(parameter))
                self._accumulators.append(accumulator)

    def _make_hook(self, parameter: torch.Tensor) -> Callable[..., None]:
        def hook(*_: object) -> None:
            if size() == 1:
                return
            handle = self._handles.get(parameter)
            if handle is not None and handle[0] is not None and self._passes_left[parameter] <= 0:
                raise AssertionError(
                    "Gradients were computed more than backward_passes_per_step times before call"
                    " to step(). Increase backward_passes_per_step to accumulate gradients locally."
                )
            self._passes_left[parameter] -= 1
            if self._passes_left[parameter] == 0:
                self._start(parameter)
            else:
                self._handles.setdefault(parameter, (None, None, None))

        return hook

    def _start(self, parameter: torch.Tensor) -> None:
        group = self._group_of.get(parameter)
        if group is None:
            self._handles[parameter] = self._reduce(parameter)
            return
        number, members = group
        if parameter.grad.is_sparse and not self._sparse_as_dense:
            self._handles[parameter] = self._reduce(parameter)
            self._separate[number].add(parameter)
        else:
            self._ready[number].add(parameter)
            self._handles.setdefault(parameter, (None, None, None))
        # Some members may have been frozen since the optimizer was made.
        together = [
            member
            for member in members
            if member.requires_grad and member not in self._separate[number]
        ]
        if together and len(self._ready[number]) == len(together):
            self._reduce_group(number, together)

    def _scales(self) -> tuple[float, float]:
        if self._op == Average and self._predivide != 1.0:
            return 1.0 / self._predivide, self._predivide
        return 1.0, 1.0

    def _priority(self, parameter: torch.Tensor) -> int:
        if not self._first_layers_first:
            return 0
        if parameter not in self._position:  # also of a parameter group that was added since
            self._position = {each: place for place, each in enumerate(_all_parameters(self))}
        return -self._position[parameter]

    def _reduce(self, parameter: torch.Tensor) -> Started:
        name, gradient = self._parameter_names[parameter], parameter.grad
        priority = self._priority(parameter)
        if gradient.is_sparse:
            if not self._sparse_as_dense:
                rows = sparse_allreduce_async(
                    gradient, f"sparse.{name}", self._op, self._process_set, priority
                )
                return rows, None, None
            gradient = gradient.to_dense()
        before, after = self._scales()
        compressed, context = self._compression.compress(gradient)
        handle = allreduce_async_(
            compressed,
            name=name,
            op=self._op,
            prescale_factor=before,
            postscale_factor=after,
            process_set=self._process_set,
            compression=self._compression,
            priority=priority,
        )
        return handle, context, None

    def _reduce_group(self, number: int, members: Sequence[torch.Tensor]) -> None:
        before, after = self._scales()
        gradients = [
            parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad
            for parameter in members
        ]
        pairs = [self._compression.compress(gradient) for gradient in gradients]
        handle = grouped_allreduce_async_(
            [tensor for tensor, _ in pairs],
            name=f"group.{number}.{self._parameter_names[members[0]]}",
            op=self._op,
            prescale_factor=before,
            postscale_factor=after,
            process_set=self._process_set,
            compression=self._compression,
            priority=max(self._priority(parameter) for parameter in members),
        )
        for position, parameter in enumerate(members):
            self._handles[parameter] = (handle, pairs[position][1], (number, position))
        self._ready.pop(number, None)

    def set_backward_passes_per_step(self, passes: int) -> None:
        self.backward_passes_per_step = passes
        for parameter in self._passes_left:
            self._passes_left[parameter] = passes

    def _forget_handles(self) -> None:
        """Drops outstanding operations after a failure or a change of the ranks."""
        self._handles.clear()
        self._ready.clear()
        self._separate.clear()
        self._synchronized = False
        self.set_backward_passes_per_step(self.backward_passes_per_step)

    def _learn_sparse_dims(self, trainable: Sequence[torch.Tensor]) -> None:
        """Agrees in the first step which gradients are sparse. Sparse and dense gradients are
        reduced by different operations; a rank without a gradient learns here in which one to take
        part."""
        if self._sparse_as_dense:
            return
        if self._sparse_dims_of != generation():
            self._sparse_dims_of, self._sparse_dims = generation(), {}
        unknown = [parameter for parameter in trainable if parameter not in self._sparse_dims]
        if not unknown:
            return
        counts = torch.zeros(
            (len(unknown), 3), dtype=torch.int32
        )  # gradients, sparse ones, their dimensions
        for row, parameter in zip(counts, unknown):
            if parameter.grad is not None:
                sparse = parameter.grad.is_sparse
                dims = parameter.grad.sparse_dim() if sparse else 0
                row.copy_(torch.tensor([1, int(sparse), dims]))
        name = f"sparse_dims.{self._parameter_names[unknown[0]]}"
        synchronize(allreduce_async_(counts, name=name, op=Sum, process_set=self._process_set))
        for parameter, (gradients, sparse, dims) in zip(unknown, counts.tolist()):
            if 0 < sparse < gradients:
                raise ValueError(
                    f"the gradient of {self._parameter_names[parameter]} is sparse on {sparse}"
                    f" ranks and dense on {gradients - sparse}: pass sparse_as_dense=True to"
                    " DistributedOptimizer"
                )
            if gradients:
                self._sparse_dims[parameter] = dims // sparse if sparse else 0

    def _no_gradient(self, parameter: torch.Tensor) -> torch.Tensor:
        dims = self._sparse_dims.get(parameter, 0)
        if dims == 0:
            return torch.zeros_like(parameter)
        values = parameter.new_zeros((0, *parameter.shape[dims:]))
        return torch.sparse_coo_tensor(
            torch.zeros((dims, 0), dtype=torch.int64), values.detach(), parameter.shape
        ).coalesce()

    def synchronize(self) -> None:
        """Waits until the .grad of every parameter is reduced over all ranks."""
        if not self._process_set.included() or size() == 1:
            self._synchronized = True
            return
        trainable = [parameter for parameter in _all_parameters(self) if parameter.requires_grad]
        if any(parameter not in self._hooked for parameter in trainable):
            self._hook()  # some parameters were added or unfrozen since
        self._learn_sparse_dims(trainable)
        for parameter in trainable:
            # Other ranks may have a gradient that this one lacks: take part with zeros.
            started = self._handles.get(parameter)
            if started is None or started[0] is None:
                if parameter.grad is None:
                    parameter.grad = self._no_gradient(parameter)
                self._passes_left.setdefault(parameter, self.backward_passes_per_step)
                if not (
                    parameter in self._group_of
                    and parameter in self._ready[self._group_of[parameter][0]]
                ):
                    self._start(parameter)
        groups: dict[int, Sequence[torch.Tensor]] = {}
        for parameter, (handle, context, place) in self._handles.items():
            assert handle is not None, "each was started above"
            if place is None:
                output = synchronize(handle)
            else:
                number, position = place
                if number not in groups:
                    groups[number] = synchronize(handle)
                output = groups[number][position]
            if not output.is_sparse:
                output = self._compression.decompress(output, context)
            if output.is_sparse:
                parameter.grad = output
            elif parameter.grad.is_sparse:
                # The gradient was reduced as dense, but some optimizers accept only sparse
                # gradients.
                parameter.grad = output.to_sparse(parameter.grad.sparse_dim())
            elif output.data_ptr() != parameter.grad.data_ptr():
                parameter.grad.copy_(output)
            self._passes_left[parameter] = self.backward_passes_per_step
        self._handles.clear()
        self._separate.clear()
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Skips the synchronization in step(), after an explicit synchronize(), for example to clip
        gradients: `with optimizer.skip_synchronize(): optimizer.step()`."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() context after"
                    " optimizer.synchronize(). This can cause training slowdown. You may want to"
                    " consider using optimizer.skip_synchronize() context if you use"
                    " optimizer.synchronize() in your code."
                )
            self.synchronize()
        self._synchronized = False
        return super().step(closure)

    def zero_grad(self, *arguments: Any, **more: Any) -> None:
        if self._handles:
            raise AssertionError(
                "optimizer.zero_grad() was called after loss.backward() but before optimizer.step()"
                " or optimizer.synchronize(). This is prohibited as it can cause a race condition."
            )
        super().zero_grad(*arguments, **more)


class _DistributedAdasumOptimizer(_Distributed):
    """Lets each rank step separately, and combines the changes by Adasum, which adds orthogonal and
    averages parallel components. So the learning rate is not scaled with the number of ranks. The
    changes of a step are one grouped exchange, so gradients can be clipped before it as usual."""

    def _begin(self, compression: AnyCompressor, backward_passes_per_step: int) -> None:
        self._compression = compression
        self.backward_passes_per_step = backward_passes_per_step

    def set_backward_passes_per_step(self, passes: int) -> None:
        self.backward_passes_per_step = passes

    def _forget_handles(self) -> None:
        pass

    def synchronize(self) -> None:
        pass  # the exchange is part of step()

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        raise AssertionError(
            "Skipping synchronization is not supported when using Adasum optimizer."
        )
        yield

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        parameters = [parameter for parameter in _all_parameters(self) if parameter.requires_grad]
        before = [parameter.detach().clone() for parameter in parameters]
        loss = super().step(closure)
        started = []
        for parameter, start in zip(parameters, before):
            compressed, context = self._compression.compress(parameter.detach() - start)
            started.append(
                (
                    allreduce_async_(
                        compressed,
                        name=f"adasum.{self._parameter_names[parameter]}",
                        op=Adasum,
                        compression=self._compression,
                    ),
                    context,
                )
            )
        with torch.no_grad():
            for parameter, start, (handle, context) in zip(parameters, before, started):
                parameter.copy_(start + self._compression.decompress(synchronize(handle), context))
        return loss


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.Tensor]] | None = None,
    compression: AnyCompressor = Compression.none,
    backward_passes_per_step: int = 1,
    op: Reduction = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Groups = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
    first_layers_first: bool = False,
) -> torch.optim.Optimizer:
    """Returns an optimizer of the same class as `optimizer`, with its state and options, that
    reduces gradients over ranks before it steps.

    groups: the number of groups, or lists of parameters, that are reduced together. The older name
    is num_groups.
    gradient_predivide_factor: for Average, the part of the division that precedes the sum.
    first_layers_first: reduces the gradients of the first parameters first, among those that all
    ranks have, although the backward pass computes them last. The next forward pass needs them
    first, if it waits for each layer separately. Not in Horovod.
    """
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if num_groups != 0:
        warnings.warn("Parameter `num_groups` has been replaced by `groups`.", DeprecationWarning)
        groups = num_groups if groups is None else groups
    if groups is not None and not (
        isinstance(groups, list) or (isinstance(groups, int) and groups >= 0)
    ):
        raise ValueError(
            "groups should be a non-negative integer or a list of lists of parameters."
        )
    names = _name_them(optimizer, named_parameters)
    if op != Adasum or size() == 1:
        return _DistributedOptimizer._instead_of(
            optimizer,
            names,
            compression=compression,
            backward_passes_per_step=backward_passes_per_step,
            op=op,
            gradient_predivide_factor=gradient_predivide_factor,
            groups=groups,
            sparse_as_dense=sparse_as_dense,
            process_set=process_set,
            first_layers_first=first_layers_first,
        )
    if process_set is not global_process_set:
        raise NotImplementedError("Adasum does not support non-global process sets yet.")
    if groups:
        raise NotImplementedError("Adasum does not support groups: it takes each parameter alone.")
    return _DistributedAdasumOptimizer._instead_of(
        optimizer, names, compression=compression, backward_passes_per_step=backward_passes_per_step
    )
