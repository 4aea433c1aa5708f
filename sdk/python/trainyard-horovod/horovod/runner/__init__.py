"""horovod.run(): runs a function on several ranks."""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from horovod.common import objects


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    np: int = 1,
    min_np: int | None = None,
    max_np: int | None = None,
    slots: int | None = None,
    reset_limit: int | None = None,
    hosts: str | None = None,
    hostfile: str | None = None,
    start_timeout: float | None = None,
    ssh_port: int | None = None,
    ssh_identity_file: str | None = None,
    disable_cache: bool | None = None,
    output_filename: str | None = None,
    verbose: int | None = None,
    use_gloo: bool | None = None,
    use_mpi: bool | None = None,
    mpi_args: str | None = None,
    network_interface: str | None = None,
    network_interfaces: str | None = None,
    executable: str | None = None,
    prefix_output_with_timestamp: bool = False,
    elastic_timeout: float | None = None,
) -> list[Any]:
    """Calls func(*args, **kwargs) on each of `np` ranks and returns the results by rank. Hosts are
    given as to horovodrun; other hosts must share this host's directory for temporary files."""
    from horovod.runner import launch, settings, task

    if min_np is not None or max_np is not None:
        raise ValueError(
            "run() starts a fixed number of ranks, without min_np and max_np: use horovodrun"
            " --min-np for a script whose ranks may change"
        )
    results = {}

    def catch(rank: int, line: bytes) -> bool:
        if not line.startswith(task.MARK):
            return False
        results[rank] = objects.loads(base64.b64decode(line[len(task.MARK) :]))
        return True

    with tempfile.TemporaryDirectory(prefix="horovod-run-") as folder:
        path = os.path.join(folder, "function")
        with open(path, "wb") as file:
            # Without cloudpickle the ranks find a function of the script by running the script, as
            # multiprocessing does.
            main = (
                "" if objects.takes_functions else getattr(sys.modules["__main__"], "__file__", "")
            )
            if (
                not main
                and not objects.takes_functions
                and getattr(func, "__module__", "") == "__main__"
            ):
                raise ValueError(
                    "cannot send a function that was defined interactively or by python -c: install"
                    " cloudpickle"
                )
            file.write(
                objects.dumps(os.path.abspath(main) if main else "")
                + objects.dumps((func, tuple(args), dict(kwargs or {})))
            )
        # The ranks must find the modules in which the function was defined.
        found = os.pathsep.join(each or os.getcwd() for each in sys.path)
        code = launch.run_static(
            settings.Settings(
                [executable or sys.executable, "-m", "horovod.runner.task"],
                np=np,
                hosts=hosts or "",
                hostfile=hostfile or "",
                slots=slots or 1,
                start_timeout=start_timeout or 600,
                ssh_port=ssh_port,
                ssh_identity=ssh_identity_file or "",
                outputs=output_filename or "",
                verbose=bool(verbose),
                timestamps=prefix_output_with_timestamp,
                variables={"TRAINYARD_FUNCTION": path, "PYTHONPATH": found},
                catch=catch,
            )
        )
    if code != 0:
        output = "\n".join(
            f"rank {rank}: {value}" for rank, (good, value) in sorted(results.items()) if not good
        )
        raise RuntimeError(f"horovod.run failed with exit code {code}\n{output}")
    missing = [rank for rank in range(np) if rank not in results]
    if missing:
        raise RuntimeError(f"ranks {missing} ended without a result")
    return [results[rank][1] for rank in range(np)]
