"""Collective operations on memory. The frameworks' modules pass the addresses of tensors, and wrap
the results."""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
import operator
import typing
from collections.abc import Iterable, Iterator, Sequence
from typing import Callable, SupportsIndex

from horovod.common import basics, engine
from horovod.common.compression import AnyCompressor, ErrorFeedbackCompressor
from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import ProcessSet

Output = typing.Any  # the result of a framework's operation: a tensor, a list of tensors, or more
Finish = Callable[[list[int]], Output]


@dataclasses.dataclass
class Buffer:
    """A dense tensor in the memory of the CPU, rows first. `owner` keeps it alive."""

    address: int
    shape: tuple[int, ...]
    type: int
    owner: typing.Any

    @property
    def count(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count


class Reduction:
    """A reduction, such as hvd.Average. `id` as in Horovod."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.id = name, number

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reduction) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __reduce__(self) -> tuple[type[Reduction], tuple[str, int]]:
        return Reduction, (self.name, self.id)


Average, Sum, Adasum = Reduction("Average", 0), Reduction("Sum", 1), Reduction("Adasum", 2)
Min, Max, Product = Reduction("Min", 3), Reduction("Max", 4), Reduction("Product", 5)
_REDUCTIONS = {
    Average: engine.AVERAGE,
    Sum: engine.SUM,
    Adasum: engine.SUM,
    Min: engine.MINIMUM,
    Max: engine.MAXIMUM,
    Product: engine.PRODUCT,
}


def op_of(op: Reduction | None, average: bool | None) -> Reduction:
    """Returns the reduction of the keyword `op` or of the older `average`; only one may be
    given."""
    if op is not None and average is not None:
        raise ValueError("The op parameter supersedes average. Please provide only one of them.")
    if op is None:
        return Sum if average is False else Average
    if op not in _REDUCTIONS:
        known = ", ".join(each.name for each in _REDUCTIONS)
        raise ValueError(f"unknown op {op!r}: use one of {known}")
    return op


class Names:
    """Names tensors for which the user gave no name. Names are equal on all ranks, which make the
    same calls in the same order."""

    def __init__(self) -> None:
        self.generation: int | None = None
        self.counters: dict[tuple[str, int | None], Iterator[int]] = {}

    def next(self, what: str, number: int | None) -> str:
        if self.generation != basics.generation():
            # ranks that joined later count from 0, too
            self.generation = basics.generation()
            self.counters = {}
        return f"{what}.noname.{next(self.counters.setdefault((what, number), itertools.count(1)))}"


_names = Names()


def name_for(
    name: str | None, what: str, process_set: ProcessSet, compression: AnyCompressor | None = None
) -> str:
    if not name and isinstance(compression, ErrorFeedbackCompressor):
        raise ValueError(
            "this compression stores its error by the tensor's name, to add it in the next step:"
            " pass a name"
        )
    return f"{what}.{name}" if name else _names.next(what, process_set.process_set_id)


def rows_of(splits: Iterable[SupportsIndex]) -> list[int]:
    """Returns the splits of an alltoall as numbers of rows. Values that are not integers are
    invalid."""
    try:
        return [operator.index(each) for each in splits]
    except TypeError:
        raise ValueError(
            f"invalid splits {splits}: they must be integers, the number of rows for each rank"
        ) from None


def _sizes(values: Sequence[int]) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * len(values))(*values)


def request(
    operation: int,
    name: str,
    process_set: ProcessSet,
    given: Buffer,
    output: Buffer | None = None,
    op: Reduction = Sum,
    prescale: float = 1.0,
    postscale: float = 1.0,
    root: int = 0,
    splits: Sequence[int] = (),
    compression: AnyCompressor | None = None,
    priority: int = 0,
) -> engine.Request:
    """Makes a request. `given`, `output`: Buffer; without an output the engine keeps the result
    until the handle is waited for. `priority`: of the requests that all ranks have submitted,
    larger ones are sent first."""
    if process_set.process_set_id is None:
        raise ValueError(
            f"{process_set} was not added: add_process_set or init(process_sets=[..]) do"
        )
    made = engine.new_request()
    made.name = name.encode()
    if op == Adasum and operation == engine.ALLREDUCE:
        # a separate operation, since it does not reduce element by element
        operation = engine.ADASUM
    made.operation, made.type, made.reduction = operation, given.type, _REDUCTIONS[op]
    made.root, made.set = root, process_set.process_set_id
    made.priority = priority
    made.input, made.input_count = given.address or None, given.count
    if output is not None:
        made.output, made.output_count = output.address or None, output.count
    made.shape, made.dimensions = _sizes(given.shape), len(given.shape)
    made.splits, made.splits_count = _sizes(splits), len(splits)
    made.prescale, made.postscale = prescale, postscale
    if isinstance(compression, ErrorFeedbackCompressor):
        if operation != engine.ALLREDUCE or op not in (Sum, Average):
            raise ValueError("this compression supports allreduce with Sum and Average only")
        if given.type == engine.F32:
            made.compression, made.compression_rank = compression.kind, compression.rank
    return made


class Pending:
    """Submitted requests, and the function that makes their result."""

    def __init__(self, requests: Sequence[engine.Request], finish: Finish, owners: object) -> None:
        self._engine = basics.engine()
        self._finish, self._owners = finish, owners
        self._handles = self._engine.submit(requests)

    def done(self) -> bool:
        return all(self._engine.done(handle) for handle in self._handles)

    def wait(self) -> Output:
        """Returns the result of `finish` for the handles. Waits for all of them even if one fails,
        since their memory is in use."""
        failure = None
        for handle in self._handles:
            try:
                self._engine.wait(handle)
            except HorovodInternalError as each:
                failure = failure or each
        try:
            if failure:
                raise failure
            return self._finish(self._handles)
        finally:
            for handle in self._handles:
                self._engine.forget(handle)


def rows(handle: int) -> list[int]:
    return basics.engine().rows(handle)


def take(handle: int, buffer: Buffer) -> None:
    """Copies the result that the engine kept for this handle into the buffer."""
    basics.engine().take(handle, buffer.address, buffer.count * engine.ITEM_BYTES[buffer.type])


class Handles:
    """Integer handles of outstanding operations, as in Horovod."""

    def __init__(self) -> None:
        self._pending: dict[int, Pending] = {}
        self._numbers = itertools.count(1)

    def add(self, pending: Pending) -> int:
        number = next(self._numbers)
        self._pending[number] = pending
        return number

    def poll(self, number: int) -> bool:
        pending = self._pending.get(number)
        return pending is None or pending.done()

    def synchronize(self, number: int) -> Output:
        pending = self._pending.pop(number, None)
        return None if pending is None else pending.wait()


def join() -> int:
    current = basics.engine()
    handle = current.join_ranks()
    current.wait(handle)
    last = current.last(handle)
    current.forget(handle)
    return last


def barrier(process_set: ProcessSet) -> None:
    nothing = Buffer(0, (0,), engine.U8, None)
    Pending(
        [request(engine.BARRIER, name_for(None, "barrier", process_set), process_set, nothing)],
        lambda _: None,
        (),
    ).wait()
