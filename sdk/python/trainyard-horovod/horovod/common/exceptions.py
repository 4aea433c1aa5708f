"""How a distributed step may end early."""


class HorovodInternalError(RuntimeError):
    """An operation between ranks failed: a rank died, hangs, or asked for something else. Under
    elastic training the state goes back to its last commit and the remaining ranks go on."""


class HostsUpdatedInterrupt(RuntimeError):
    """Hosts came or go, nothing failed: what was computed stays. `skip_sync`:
    no new rank needs the state."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the hosts of this training changed")
        self.skip_sync = skip_sync
