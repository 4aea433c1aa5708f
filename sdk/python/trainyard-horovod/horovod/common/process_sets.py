"""Process sets: subsets of the ranks, which may reduce among themselves independently of others."""

from __future__ import annotations

from collections.abc import Sequence

from horovod.common import basics


class ProcessSet:
    """A subset of the ranks. It takes effect with add_process_set or init(process_sets=..), which
    all ranks must call with the same sets."""

    def __init__(self, ranks_or_comm: Sequence[int]) -> None:
        if not isinstance(ranks_or_comm, (list, tuple, range)):
            raise ValueError(
                f"a ProcessSet takes a list of ranks, not {type(ranks_or_comm).__name__}: MPI"
                " communicators are not supported"
            )
        self.ranks = sorted({int(rank) for rank in ranks_or_comm})
        self.process_set_id: int | None = None

    def _known(self) -> None:
        if self.process_set_id is None:
            raise ValueError(f"{self} was not added: add_process_set or init(process_sets=[..]) do")

    def included(self) -> bool:
        """Returns whether this rank belongs to the set."""
        self._known()
        return basics.rank() in self.ranks

    def rank(self) -> int:
        """Returns this rank's index in the set."""
        self._known()
        return self.ranks.index(basics.rank()) if basics.rank() in self.ranks else -1

    def size(self) -> int:
        self._known()
        return len(self.ranks)

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"

    __repr__ = __str__


class _Everyone(ProcessSet):
    """The set of all ranks, including those after the next init()."""

    def __init__(self) -> None:
        super().__init__([])
        self.process_set_id = 0

    def included(self) -> bool:
        return True

    def rank(self) -> int:
        return basics.rank()

    def size(self) -> int:
        return basics.size()


global_process_set = _Everyone()
_sets: dict[int, ProcessSet] = {}  # by number


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Adds a process set and returns it. All ranks must call it, with the same ranks and in the
    same order."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set is global_process_set or process_set.process_set_id is not None:
        raise ValueError(f"{process_set} already exists")
    if process_set.ranks == list(range(basics.size())) or any(
        each.ranks == process_set.ranks for each in _sets.values()
    ):
        raise ValueError(f"a process set of the ranks {process_set.ranks} already exists")
    if not process_set.ranks or process_set.ranks[0] < 0 or process_set.ranks[-1] >= basics.size():
        raise ValueError(
            f"invalid process set {process_set.ranks}: the number of ranks is {basics.size()}"
        )
    process_set.process_set_id = basics.engine().add_set(process_set.ranks)
    _sets[process_set.process_set_id] = process_set
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """Removes a process set; all ranks must call it. Returns False if the set was not added."""
    if process_set is global_process_set or process_set.process_set_id not in _sets:
        return False
    basics.engine().remove_set(process_set.process_set_id)
    del _sets[process_set.process_set_id]
    process_set.process_set_id = None
    return True


def process_set_ids_and_ranks() -> dict[int, list[int]]:
    everyone = {0: list(range(basics.size()))}
    return {**everyone, **{number: list(each.ranks) for number, each in _sets.items()}}


def forget() -> None:
    """Forgets all sets at shutdown, since the ranks may change."""
    for each in _sets.values():
        each.process_set_id = None
    _sets.clear()
