"""Exceptions that end a distributed step early."""


class HorovodInternalError(RuntimeError):
    """An operation between ranks failed, since a rank died, hangs, or requested another operation.
    In elastic training the state returns to its last commit, and the remaining ranks continue."""


class HostsUpdatedInterrupt(RuntimeError):
    """Hosts were added, or are about to leave, without a failure: results so far are kept.
    `skip_sync`: no new rank needs the state."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the hosts of this training changed")
        self.skip_sync = skip_sync
