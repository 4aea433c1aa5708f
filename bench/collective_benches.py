"""The benches of src/collectives and sdk/python: whom they stand beside,
and the networks that they are measured on."""

import contextlib
import json
import os
import subprocess
import tempfile

import progress
from rows import BIN, ROOT, row

MIB = 1 << 20
COLLECTIVE_ROUNDS = 9
LINK_ROUNDS = 3
TORCH_ROUNDS = 7
NAME_ROUNDS, NAME_STEPS = 5, 5
RESNET_50_BYTES = 25_557_032 * 4
MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def microseconds(*command, **environment):
    """What rank 0 of one run measured; a run that fails fails the bench."""
    done = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        env=dict(os.environ, **environment),
        timeout=120,
    )
    return json.loads(done.stdout.strip().splitlines()[-1])["microseconds"]


def ours(ranks, size, kind="f32", way="ordinary"):
    return lambda: microseconds(
        os.path.join(BIN, "reduce_with_ours"), str(ranks), str(size), kind, way
    )


def open_mpi(ranks, size, transport="vader"):
    words = [
        "mpirun.openmpi",
        "-np",
        str(ranks),
        "--oversubscribe",
        "--mca",
        "pml",
        "ob1",
        "--mca",
        "btl",
        "self," + transport,
    ]
    words += ["--mca", "btl_tcp_if_include", "lo"] if transport == "tcp" else []
    return lambda: microseconds(
        *words, os.path.join(BIN, "reduce_with_mpi"), str(size), **MPI_AS_ROOT
    )


def mpich(ranks, size):
    return lambda: microseconds(
        "mpirun.mpich",
        "-np",
        str(ranks),
        "-iface",
        "lo",
        os.path.join(BIN, "reduce_with_mpich"),
        str(size),
    )


def gloo(ranks, size):
    def run():
        with tempfile.TemporaryDirectory(dir=os.path.join(ROOT, "build")) as store:
            return microseconds(os.path.join(BIN, "reduce_with_gloo"), str(ranks), str(size), store)

    return run


def collectives():
    """Allreduce beside Open MPI, MPICH and Gloo, in turn: float32 sums unless the row says more."""
    cases = [
        (
            "2 ranks, 1 KiB",
            ours(2, 1024),
            [(open_mpi(2, 1024), "Open MPI", 1.0), (mpich(2, 1024), "MPICH", None)],
        ),
        (
            "2 ranks, 1 MiB",
            ours(2, MIB),
            [(open_mpi(2, MIB), "Open MPI", 0.9), (mpich(2, MIB), "MPICH", None)],
        ),
        (
            "2 ranks, 25 MiB",
            ours(2, 25 * MIB),
            [
                (open_mpi(2, 25 * MIB), "Open MPI", 0.47),
                (mpich(2, 25 * MIB), "MPICH", None),
                (gloo(2, 25 * MIB), "Gloo", 0.16),
            ],
        ),
        (
            "2 ranks, 25 MiB, registered",
            ours(2, 25 * MIB, way="registered"),
            [(open_mpi(2, 25 * MIB), "Open MPI", 0.2)],
        ),
        ("2 ranks, 100 MiB", ours(2, 100 * MIB), [(open_mpi(2, 100 * MIB), "Open MPI", 0.3)]),
        (
            "2 ranks, 25 MiB, f16",
            ours(2, 25 * MIB, "f16"),
            [(ours(2, 25 * MIB), "f32, as many bytes", 1.3)],
        ),
        (
            "2 ranks, 25 MiB, bf16",
            ours(2, 25 * MIB, "bf16"),
            [(ours(2, 25 * MIB), "f32, as many bytes", 1.3)],
        ),
        ("4 ranks, 1 KiB", ours(4, 1024), [(open_mpi(4, 1024), "Open MPI", 1.0)]),
        ("4 ranks, 25 MiB", ours(4, 25 * MIB), [(open_mpi(4, 25 * MIB), "Open MPI", 1.0)]),
        ("8 ranks, 1 KiB", ours(8, 1024), [(open_mpi(8, 1024), "Open MPI", 1.0)]),
        ("8 ranks, 25 MiB", ours(8, 25 * MIB), [(open_mpi(8, 25 * MIB), "Open MPI", 1.0)]),
        (
            "2 ranks, TCP, 1 KiB",
            ours(2, 1024, way="tcp"),
            [(open_mpi(2, 1024, "tcp"), "Open MPI over TCP", 1.0)],
        ),
        (
            "2 ranks, TCP, 25 MiB",
            ours(2, 25 * MIB, way="tcp"),
            [(open_mpi(2, 25 * MIB, "tcp"), "Open MPI over TCP", 1.0)],
        ),
    ]
    mine = {name: [] for name, *_ in cases}
    theirs = {(name, peer): [] for name, _, peers in cases for _, peer, _ in peers}
    starts = {16: [], 64: []}
    for _ in progress.rounds(range(COLLECTIVE_ROUNDS)):
        for name, measure, peers in cases:
            mine[name].append(measure())
            for measure_peer, peer, _ in peers:
                theirs[name, peer].append(measure_peer())
        for ranks, seconds in starts.items():
            seconds.append(ours(ranks, 64, way="start")() / 1e6)
    return [
        row(
            "collectives",
            name,
            "us",
            mine[name],
            theirs[name, peer],
            peer,
            f"ratio <= {bound}" if bound else "shown",
            lambda a, b, bound=bound: bound is None or a <= bound * b,
        )
        for name, _, peers in cases
        for _, peer, bound in peers
    ] + [
        row(
            "collectives",
            f"start of {ranks} ranks",
            "s",
            starts[ranks],
            None,
            None,
            f"< {bound} s",
            lambda mine, _, bound=bound: mine < bound,
        )
        for ranks, bound in ((16, 1), (64, 3))
    ]


# -- hosts with a network between them
# --------------------------------------------------------------


class Network:
    """Hosts as network namespaces on one bridge. Each one's link carries `rate` in either
    direction.

    Their TCP is Reno, whatever this machine's is: BBR takes the speed at which a shaper lets a
    burst through for the link's, sends ten times as fast as the link is,
    and plans that change partners lose a third of their time by it.

    Use it as a context: what it made is gone afterwards.
    """

    def __init__(self, hosts, rate):
        self.rate, self.names = rate, [f"yb{os.getpid()}-{number}" for number in range(hosts)]
        self.bridge = f"yb{os.getpid()}-b"
        self.addresses = [f"10.213.7.{number + 1}" for number in range(hosts)]

    def command(self, host, *words):
        return ["ip", "netns", "exec", self.names[host], *words]

    def __enter__(self):
        def run(*words):
            subprocess.run(words, check=True, capture_output=True)

        def shape(namespace, device):
            # A burst of two of the largest segments that a virtual link carries;
            # a queue as deep as a switch's.
            run(
                "ip",
                "netns",
                "exec",
                namespace,
                "tc",
                "qdisc",
                "add",
                "dev",
                device,
                "root",
                "tbf",
                "rate",
                self.rate,
                "burst",
                "128kb",
                "limit",
                "4mb",
            )

        try:
            run("ip", "netns", "add", self.bridge)
            run("ip", "-n", self.bridge, "link", "add", "bridge", "type", "bridge")
            run("ip", "-n", self.bridge, "link", "set", "bridge", "up")
            for name, address in zip(self.names, self.addresses):
                port = "p" + name.rpartition("-")[2]
                run("ip", "netns", "add", name)
                run(
                    "ip",
                    "netns",
                    "exec",
                    name,
                    "sysctl",
                    "-qw",
                    "net.ipv4.tcp_congestion_control=reno",
                )
                run("ip", "-n", name, "link", "set", "lo", "up")
                run(
                    "ip",
                    "-n",
                    name,
                    "link",
                    "add",
                    "eth0",
                    "type",
                    "veth",
                    "peer",
                    "name",
                    port,
                    "netns",
                    self.bridge,
                )
                run("ip", "-n", name, "addr", "add", address + "/24", "dev", "eth0")
                run("ip", "-n", name, "link", "set", "eth0", "up")
                run("ip", "-n", self.bridge, "link", "set", port, "master", "bridge", "up")
                shape(name, "eth0")
                shape(self.bridge, port)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in [*self.names, self.bridge]:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def goodput(self):
        """Bytes a second in each direction, both at once, as iperf3 sees them."""
        server = subprocess.Popen(
            self.command(1, "iperf3", "-s", "-1", "--forceflush", "-B", self.addresses[1]),
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            for line in server.stdout:
                if "listening" in line:
                    break
            done = subprocess.run(
                self.command(
                    0, "iperf3", "-c", self.addresses[1], "--bidir", "-t", "3", "-O", "1", "-J"
                ),
                check=True,
                capture_output=True,
                text=True,
                timeout=60,
            )
        finally:
            with contextlib.suppress(ProcessLookupError):
                server.kill()
            server.wait()
            server.stdout.close()
        end = json.loads(done.stdout)["end"]
        return (
            (
                end["sum_received"]["bits_per_second"]
                + end["sum_received_bidir_reverse"]["bits_per_second"]
            )
            / 2
            / 8
        )

    def allreduce_seconds(self, size, *plans):
        """Of one rank on each host, as the last to be through saw it."""
        processes = [
            subprocess.Popen(
                self.command(
                    host,
                    os.path.join(BIN, "reduce_with_ours"),
                    str(len(self.names)),
                    str(size),
                    "f32",
                    "hosts",
                    str(host),
                    ",".join(self.addresses),
                    *plans,
                ),
                stdout=subprocess.PIPE,
                text=True,
            )
            for host in range(len(self.names))
        ]
        try:
            said = [process.communicate(timeout=120)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        assert all(process.returncode == 0 for process in processes), said
        return max(json.loads(one.strip().splitlines()[-1])["microseconds"] for one in said) / 1e6


def links():
    """Allreduce between hosts with shaped links, beside the least time that the links allow:
    2(n-1)/n x bytes / goodput."""
    rows = []
    for hosts, rate in ((2, "1gbit"), (4, "1gbit"), (2, "2.5gbit")):
        mine, least = {16: [], 64: []}, {16: [], 64: []}
        with Network(hosts, rate) as network:
            for _ in progress.rounds(range(LINK_ROUNDS)):
                goodput = network.goodput()
                for mebibytes in mine:
                    mine[mebibytes].append(network.allreduce_seconds(mebibytes * MIB) * 1e3)
                    least[mebibytes].append(
                        2 * (hosts - 1) / hosts * mebibytes * MIB / goodput * 1e3
                    )
        rows += [
            row(
                "links",
                f"{hosts} hosts, {rate}, {mebibytes} MiB",
                "ms",
                mine[mebibytes],
                least[mebibytes],
                "iperf3's goodput both ways at once",
                "ratio <= 1.05",
                lambda a, b: a <= 1.05 * b,
            )
            for mebibytes in mine
        ]
    return rows


# -- tensors by name
# --------------------------------------------------------------------------------


def by_name(ranks, way):
    """(by name, a call for each) in milliseconds, of one run's rounds in turn."""
    done = subprocess.run(
        [os.path.join(BIN, "reduce_by_name"), str(ranks), way, str(NAME_STEPS)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        [one["milliseconds"] for one in said if one["side"] == side] for side in ("ours", "peer")
    ]


def overlap():
    """The gradients of ResNet-50 by name, fused in the background,
    beside a call for each and beside one sum of as many bytes."""
    rows = []
    for ranks, way, transport, where in (
        (2, "shared", "vader", "2 ranks"),
        (4, "shared", "vader", "4 ranks"),
        (2, "tcp", "tcp", "2 ranks, TCP"),
    ):
        mine, each, whole = [], [], []
        for _ in progress.rounds(range(NAME_ROUNDS)):
            fused, apart = by_name(ranks, way)
            mine += fused
            each += apart
            whole.append(open_mpi(ranks, RESNET_50_BYTES, transport)() / 1e3)
        case = f"{where}, 161 tensors of 102 MB"
        rows += [
            row("overlap", case, "ms", mine, each, "a call for each", "shown", lambda a, b: True),
            row(
                "overlap",
                case,
                "ms",
                mine,
                whole,
                "Open MPI, one sum of as many bytes",
                "shown",
                lambda a, b: True,
            ),
        ]
    return rows


# -- torch
# ------------------------------------------------------------------------------------------


def torch_loop(what, ranks, backend):
    """What rank 0 measured, in microseconds."""
    with tempfile.TemporaryDirectory(dir=os.path.join(ROOT, "build")) as folder:
        processes = []
        for rank in range(ranks):
            environment = dict(
                os.environ,
                RANK=str(rank),
                WORLD_SIZE=str(ranks),
                BACKEND=backend,
                MEET_AT="file://" + os.path.join(folder, "store"),
                OMP_NUM_THREADS="1",
                OPENBLAS_NUM_THREADS="1",
                GLOO_SOCKET_IFNAME="lo",
            )
            processes.append(
                subprocess.Popen(
                    [
                        os.path.join(ROOT, "build", "torch", "bin", "python"),
                        os.path.join(ROOT, "bench", "programs", "torch_loops.py"),
                        what,
                    ],
                    env=environment,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
        try:
            said = [process.communicate(timeout=120)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        assert all(process.returncode == 0 for process in processes), (what, backend)
        return json.loads(said[0].strip().splitlines()[-1])["microseconds"]


def torch():
    """torch.distributed over our backend beside its own gloo: an allreduce, and a step of DDP,
    on two ranks of this machine."""
    subprocess.run([os.path.join(ROOT, "tests", "torch", "prepare")], check=True)
    names = [
        ("all_reduce", "trainyard"),
        ("all_reduce", "gloo"),
        ("step", "trainyard"),
        ("step", "gloo"),
        ("step", "nothing"),
        ("alone", "none"),
    ]
    took = {name: [] for name in names}
    for _ in progress.rounds(range(TORCH_ROUNDS)):
        for what, backend in names:
            took[what, backend].append(torch_loop(what, 1 if what == "alone" else 2, backend))

    def milliseconds(what, backend):
        return [each / 1e3 for each in took[what, backend]]

    step = milliseconds("step", "trainyard")
    return [
        row(
            "torch",
            "2 ranks, all_reduce of 1 KiB",
            "us",
            took["all_reduce", "trainyard"],
            took["all_reduce", "gloo"],
            "gloo",
            "ratio <= 0.05",
            lambda a, b: a <= 0.05 * b,
        ),
        row(
            "torch",
            "2 ranks, DDP step, MLP of 5.8 M",
            "ms",
            step,
            milliseconds("step", "nothing"),
            "a backend that does nothing",
            "ratio <= 1.11",
            lambda a, b: b >= 0.9 * a,
        ),
        row(
            "torch",
            "2 ranks, DDP step, MLP of 5.8 M",
            "ms",
            step,
            milliseconds("alone", "none"),
            "one rank alone (weak scaling)",
            "ratio <= 1.43",
            lambda a, b: b >= 0.7 * a,
        ),
        row(
            "torch",
            "2 ranks, DDP step, MLP of 5.8 M",
            "ms",
            step,
            milliseconds("step", "gloo"),
            "gloo",
            "shown",
            lambda a, b: True,
        ),
    ]
