"""Makes hosts with links of a known rate: network namespaces on a bridge."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess

from bench.rows import BIN


class Network:
    """Hosts as network namespaces on one bridge. Each one's link carries `rate` in either
    direction.

    Their TCP is always Reno. BBR mistakes the speed at which a shaper passes a burst for the
    link's, and sends ten times as fast, which costs plans that change partners a third of their
    time.

    Use it as a context, which removes the namespaces at its end.
    """

    def __init__(self, hosts: int, rate: str) -> None:
        self.rate, self.names = rate, [f"yb{os.getpid()}-{number}" for number in range(hosts)]
        self.bridge = f"yb{os.getpid()}-b"
        self.addresses = [f"10.213.7.{number + 1}" for number in range(hosts)]

    def command(self, host: int, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.names[host], *words]

    def __enter__(self) -> Network:
        def run(*words: str) -> None:
            subprocess.run(words, check=True, capture_output=True)

        def shape(namespace: str, device: str) -> None:
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

    def __exit__(self, *_: object) -> None:
        for name in [*self.names, self.bridge]:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def goodput(self) -> float:
        """Returns the bytes per second in each direction, both at the same time, measured by
        iperf3."""
        server = subprocess.Popen(
            self.command(1, "iperf3", "-s", "-1", "--forceflush", "-B", self.addresses[1]),
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
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
            if server.stdout is not None:
                server.stdout.close()
        end = json.loads(done.stdout)["end"]
        there: float = end["sum_received"]["bits_per_second"]
        back: float = end["sum_received_bidir_reverse"]["bits_per_second"]
        return (there + back) / 2 / 8

    def allreduce_seconds(self, size: int, *plans: str) -> float:
        """Returns the time of the slowest rank of an allreduce with one rank per host."""
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
            output = [process.communicate(timeout=120)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        assert all(process.returncode == 0 for process in processes), output
        took = [float(json.loads(one.strip().splitlines()[-1])["microseconds"]) for one in output]
        return max(took) / 1e6
