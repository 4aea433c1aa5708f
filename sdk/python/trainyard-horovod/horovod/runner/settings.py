"""Parses the options of horovodrun, and derives the environment variables of ranks from them."""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import typing
from collections.abc import Mapping, Sequence


@dataclasses.dataclass
class Settings:
    command: list[str]
    np: int = 1
    hosts: str = ""
    hostfile: str = ""
    min_np: int | None = None
    max_np: int | None = None
    discovery: str = ""
    slots: int = 1
    elastic_timeout: float = 600
    reset_limit: int = 0
    cooldown: tuple[float, float] | None = None
    start_timeout: float = 600
    verbose: bool = False
    outputs: str = ""
    labels: bool = True
    timestamps: bool = False
    ssh_port: int | None = None
    ssh_identity: str = ""
    variables: dict[str, str] = dataclasses.field(default_factory=dict)
    # messages about options that are accepted but have no effect
    notes: list[str] = dataclasses.field(default_factory=list)
    check_build: bool = False
    version: bool = False
    # Receives (slot or rank, line of output); returns True if the line is not to be printed.
    catch: typing.Callable[[int, bytes], bool] | None = None

    @property
    def elastic(self) -> bool:
        return self.min_np is not None or self.max_np is not None or bool(self.discovery)

    @property
    def ssh(self) -> list[str]:
        command = ["ssh", "-o", "PasswordAuthentication=no", "-o", "StrictHostKeyChecking=no"]
        if self.ssh_port:
            command += ["-p", str(self.ssh_port)]
        if self.ssh_identity:
            command += ["-i", self.ssh_identity]
        return command


# Options that only set a variable for the ranks: (option, variable, conversion). None: no effect.
_TUNING: list[tuple[str, str | None, typing.Callable[[str], str]]] = [
    (
        "--fusion-threshold-mb",
        "HOROVOD_FUSION_THRESHOLD",
        lambda value: str(int(float(value) * 1048576)),
    ),
    ("--cycle-time-ms", "HOROVOD_CYCLE_TIME", str),
    ("--cache-capacity", "HOROVOD_CACHE_CAPACITY", str),
    ("--timeline-filename", "HOROVOD_TIMELINE", str),
    ("--stall-check-warning-time-seconds", "HOROVOD_STALL_CHECK_TIME_SECONDS", str),
    ("--stall-check-shutdown-time-seconds", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", str),
    ("--gloo-timeout-seconds", "HOROVOD_GLOO_TIMEOUT_SECONDS", str),
    ("--log-level", "HOROVOD_LOG_LEVEL", str),
    ("--num-nccl-streams", None, str),
    ("--network-interfaces", None, str),
    ("--nics", None, str),
    ("--mpi-args", None, str),
    ("--binding-args", None, str),
    ("--thread-affinity", None, str),
    ("--autotune-log-file", "HOROVOD_AUTOTUNE_LOG", str),
    ("--autotune-warmup-samples", None, str),
    ("--autotune-steps-per-sample", None, str),
    ("--autotune-bayes-opt-max-samples", None, str),
    ("--autotune-gaussian-process-noise", None, str),
]
_FLAGS = [
    ("--timeline-mark-cycles", "HOROVOD_TIMELINE_MARK_CYCLES", "1"),
    ("--no-stall-check", "HOROVOD_STALL_CHECK_DISABLE", "1"),
    ("--autotune", "HOROVOD_AUTOTUNE", "1"),
    ("--no-autotune", "HOROVOD_AUTOTUNE", "0"),
]
_IGNORED = [
    "--gloo",
    "--mpi",
    "--jsrun",
    "--tcp",
    "--disable-cache",
    "--hierarchical-allreduce",
    "--no-hierarchical-allreduce",
    "--hierarchical-allgather",
    "--no-hierarchical-allgather",
    "--torus-allreduce",
    "--no-torus-allreduce",
    "--no-timeline-mark-cycles",
    "--stall-check",
    "--no-log-hide-timestamp",
    "--log-hide-timestamp",
    "--log-with-timestamp",
    "--log-without-timestamp",
]


def _cooldown(words: Sequence[str]) -> tuple[float, float]:
    try:
        least, most = (float(word) for word in words)
    except ValueError:
        raise argparse.ArgumentTypeError("expected two numbers of seconds") from None
    return least, most


def parse(arguments: Sequence[str] | None) -> Settings:
    parser = argparse.ArgumentParser(
        prog="horovodrun",
        description=(
            "Starts a Horovod script on local and remote hosts, over Trainyard's collectives."
        ),
        allow_abbrev=False,
    )
    parser.add_argument("-v", "--version", action="store_true")
    parser.add_argument(
        "-cb", "--check-build", action="store_true", help="show the available frameworks and exit"
    )
    parser.add_argument("-np", "--num-proc", type=int, help="number of ranks")
    parser.add_argument("-H", "--hosts", default="", help="HOST:SLOTS,HOST:SLOTS")
    parser.add_argument(
        "-hostfile", "--hostfile", default="", help="file with one line `HOST slots=N` per host"
    )
    parser.add_argument("-p", "--ssh-port", type=int)
    parser.add_argument("-i", "--ssh-identity-file", default="")
    parser.add_argument(
        "--start-timeout",
        type=float,
        default=float(os.environ.get("HOROVOD_START_TIMEOUT", 600)),
        help="seconds within which all ranks must have connected",
    )
    parser.add_argument(
        "--output-filename",
        default="",
        help="directory for the ranks' output: rank.N/stdout and rank.N/stderr",
    )
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--prefix-output-with-timestamp", action="store_true")
    elastic = parser.add_argument_group("elastic training")
    elastic.add_argument("--min-np", "--min-num-proc", type=int)
    elastic.add_argument("--max-np", "--max-num-proc", type=int)
    elastic.add_argument(
        "--host-discovery-script",
        default="",
        help="script that prints the available hosts, one HOST or HOST:SLOTS per line",
    )
    elastic.add_argument(
        "--slots",
        "--slots-per-host",
        dest="slots",
        type=int,
        default=1,
        help="slots of hosts for which the script prints none",
    )
    elastic.add_argument(
        "--elastic-timeout",
        type=float,
        default=600,
        help="seconds to wait until --min-np ranks are available",
    )
    elastic.add_argument(
        "--reset-limit",
        type=int,
        default=0,
        help="maximum number of times that ranks are reassigned",
    )
    elastic.add_argument(
        "--blacklist-cooldown-range",
        nargs=2,
        metavar=("LEAST", "MOST"),
        help="seconds after which a host that failed is used again",
    )
    for option, _, _ in _TUNING:
        parser.add_argument(option, dest=option)
    for option, _, _ in _FLAGS:
        parser.add_argument(option, dest=option, action="store_true")
    for option in _IGNORED:
        parser.add_argument(option, dest=option, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)

    settings = Settings(
        given.command[1:] if given.command[:1] == ["--"] else given.command,
        hosts=given.hosts,
        hostfile=given.hostfile,
        min_np=given.min_np,
        max_np=given.max_np,
        discovery=given.host_discovery_script,
        slots=given.slots,
        elastic_timeout=given.elastic_timeout,
        reset_limit=given.reset_limit,
        start_timeout=given.start_timeout,
        verbose=given.verbose,
        outputs=given.output_filename,
        timestamps=given.prefix_output_with_timestamp,
        ssh_port=given.ssh_port,
        ssh_identity=given.ssh_identity_file,
        check_build=given.check_build,
        version=given.version,
    )
    if settings.check_build or settings.version:
        return settings
    for option, variable, write in _TUNING:
        value = getattr(given, option)
        if value is None:
            continue
        if variable:
            settings.variables[variable] = write(value)
        else:
            settings.notes.append(f"{option} has no effect here")
    for option, variable, value in _FLAGS:
        if getattr(given, option):
            settings.variables[variable] = value
    for option in _IGNORED:
        if getattr(given, option):
            settings.notes.append(
                f"{option} has no effect here: ranks connect over TCP, and share memory on a host"
                if option in ("--gloo", "--mpi", "--jsrun", "--tcp")
                else (
                    f"{option} has no effect here: plans are chosen by their estimated cost,"
                    " unless TRAINYARD_PLANS is set"
                )
            )
    try:
        settings.cooldown = (
            _cooldown(given.blacklist_cooldown_range) if given.blacklist_cooldown_range else None
        )
    except argparse.ArgumentTypeError as failure:
        parser.error(f"--blacklist-cooldown-range: {failure}")
    if not settings.command:
        parser.error("missing command: horovodrun -np 2 python train.py")
    if settings.hosts and settings.hostfile:
        parser.error("-H and --hostfile exclude each other")
    settings.np = given.num_proc if given.num_proc is not None else given.min_np
    if settings.np is None:
        parser.error("missing -np: the number of ranks")
    if settings.elastic:
        settings.min_np = settings.min_np or settings.np
        settings.max_np = (
            settings.max_np or max(settings.np, settings.min_np)
            if not settings.discovery
            else settings.max_np or 1 << 20
        )
        if not 1 <= settings.min_np <= settings.max_np:
            parser.error(
                f"--min-np must be at least 1 and at most --max-np, {settings.max_np}, not"
                f" {settings.min_np}"
            )
    if settings.np < 1:
        parser.error("-np must be at least 1")
    return settings


# Variables that are not passed to remote hosts: they describe this machine or this shell. Horovod
# passes all but a shell's functions.
_NOT_FORWARDED = re.compile(
    r"^(BASH_FUNC_|SSH_|DISPLAY$|XDG_|LS_COLORS$|PWD$|OLDPWD$|SHLVL$|HOSTNAME$|_$|TERM$|HOME$|USER$|LOGNAME$|SHELL$|MAIL$|TMPDIR$)"
)


def forwarded(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if not _NOT_FORWARDED.match(name) and name.isidentifier()
    }
