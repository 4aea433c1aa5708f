"""Elastic training, which continues when ranks are lost or added: shared by all frameworks.

    @hvd.elastic.run
    def train(state): ...                # state.commit() now and then

When a rank dies, the operations of the other ranks fail. These return to their last commit, get new
ranks, and continue. A new rank, or a host that leaves, interrupts the training at the next commit,
without loss.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from horovod.common import basics, member
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt

Result = TypeVar("Result")
# The broadcast_object of a framework: (object, root rank, name of the exchange) -> the root's
# object.
BroadcastObject = Callable[[Any, int, str], Any]
Value = Any  # of an attribute


class State:
    """The training state that survives a change of ranks. `bcast_object` and `get_rank` are the
    framework's."""

    def __init__(self, bcast_object: BroadcastObject, get_rank: Callable[[], int]) -> None:
        self._broadcast_object, self._get_rank = bcast_object, get_rank
        self._reset_callbacks: list[Callable[[], object]] = []

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], object]]) -> None:
        """Registers functions that are called after the set of ranks has changed, for example to
        scale a learning rate."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def commit(self) -> None:
        """Saves the state to which training returns when a rank is lost. New ranks are admitted
        here, too."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt on all ranks when hosts were added or are about to leave."""
        mine = member.current()
        if mine is None:
            return
        # Rank 0 decides, since ranks learn of a change at different times.
        added, removed = self._broadcast_object(mine.changed(), 0, "elastic.changed")
        if added or removed:
            raise HostsUpdatedInterrupt(skip_sync=removed and not added)

    def save(self) -> None:
        raise NotImplementedError("a subclass of State must implement save()")

    def restore(self) -> None:
        raise NotImplementedError("a subclass of State must implement restore()")

    def sync(self) -> None:
        raise NotImplementedError("a subclass of State must implement sync()")

    def reset(self) -> None:
        pass


class ObjectState(State):
    """Attributes that can be copied and pickled: ObjectState(.., epoch=0, batch=0).epoch."""

    def __init__(
        self, bcast_object: BroadcastObject, get_rank: Callable[[], int], **attributes: Any
    ) -> None:
        super().__init__(bcast_object, get_rank)
        self._names = list(attributes)
        for name, value in attributes.items():
            setattr(self, name, value)
        self._saved = copy.deepcopy(attributes)

    if TYPE_CHECKING:  # the names that the user passed

        def __getattr__(self, name: str) -> Value: ...

        def __setattr__(self, name: str, value: Value) -> None: ...

    def save(self) -> None:
        self._saved = {name: copy.deepcopy(getattr(self, name)) for name in self._names}

    def restore(self) -> None:
        for name, value in self._saved.items():
            setattr(self, name, copy.deepcopy(value))

    def sync(self) -> None:
        if self._names:
            now = {name: getattr(self, name) for name in self._names}
            for name, value in self._broadcast_object(now, 0, "elastic.state").items():
                setattr(self, name, value)
            self.save()


def run_with(
    any_rank: Callable[[bool], bool], function: Callable[..., Result]
) -> Callable[..., Result]:
    """Wraps the training function. `any_rank(flag)` returns whether the flag is set on any rank."""

    @functools.wraps(function)
    def wrapper(state: State, *arguments: Any, **more: Any) -> Result:
        basics.init()
        skip_sync = False
        while True:
            try:
                # A new rank has no state yet. Then all ranks take part, even those that would have
                # skipped the exchange.
                if any_rank(not skip_sync):
                    state.sync()
                return function(state, *arguments, **more)
            except HorovodInternalError as failure:
                mine = member.current()
                if mine is None:
                    raise  # no launcher could assign other ranks: see horovodrun --min-np
                mine.complaint = str(failure)[:1000]
                basics.say(f"an operation failed, back to the last commit: {failure}")
                state.restore()
                skip_sync = False
            except HostsUpdatedInterrupt as interrupt:
                skip_sync = interrupt.skip_sync
            basics.shutdown()
            basics.init()
            state.on_reset()

    return wrapper
