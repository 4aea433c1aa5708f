"""A hostile `train`, root inside its container, tries to get out of it or into another job's."""

import json
import os

import pytest

import jobs
from trainyard_server import wait_for

VICTIM = r"""
import ctypes, os, socket, subprocess, time
libc = ctypes.CDLL(None, use_errno=True)
segment = libc.shmget(0x7472, 4096, 0o1666)
open("/dev/shm/secret", "w").write("secret")
server = socket.create_server(("0.0.0.0", 9000))
address = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()[0]
print("victim", address, "segment", segment >= 0, open("/proc/self/uid_map").read().split()[1], flush=True)
time.sleep(1000)
"""

# Each attempt prints "NAME refused" or "NAME REACHED how".
HOSTILE = r"""
import ctypes, errno, glob, os, socket, sys
victim, data, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)

def attempt(name, reach):
    try:
        got = reach()
    except (OSError, PermissionError) as fault:
        print(name, "refused", fault, flush=True)
        return
    print(name, "REACHED" if got else "refused", got or "", flush=True)

def call(function, *arguments):
    result = function(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "returned " + str(result)

def connect(host, to):
    with socket.create_connection((host, to), timeout=2):
        return f"connected to {host}:{to}"

gateway = next(".".join(str(int(line.split()[2][i:i + 2], 16)) for i in (6, 4, 2, 0))
               for line in open("/proc/net/route").readlines()[1:] if line.split()[1] == "00000000")

attempt("data-directory", lambda: os.path.exists(data) and os.listdir(data))
attempt("agents-socket", lambda: socket.socket(socket.AF_UNIX).connect(data + "/agents.sock") or "connected")
attempt("root-home", lambda: os.path.exists("/root") and os.listdir("/root"))
attempt("shadow", lambda: os.path.exists("/etc/shadow") and open("/etc/shadow").read(1))
attempt("other-job", lambda: connect(victim, 9000))
for name, host in (("gateway", gateway), ("loopback", "127.0.0.1")):
    attempt("server-port-by-" + name, lambda: connect(host, port))
attempt("ssh-of-machine", lambda: connect(gateway, 22))
attempt("mount", lambda: call(libc.mount, b"none", b"/tmp", b"tmpfs", 0, None))
attempt("remount", lambda: call(libc.mount, None, b"/usr", None, 32 | 4096, None))
attempt("umount", lambda: call(libc.umount2, b"/proc", 2))
attempt("write-usr", lambda: open("/usr/bin/owned", "w"))
attempt("ptrace", lambda: call(libc.ptrace, 16, 1, None, None))
attempt("proc-1-root", lambda: os.path.exists("/proc/1/root" + data))
attempt("proc-sysrq", lambda: open("/proc/sysrq-trigger", "w").write("h"))
attempt("proc-sys", lambda: open("/proc/sys/kernel/hostname", "w").write("x"))
attempt("raw-socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("packet-socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3))
attempt("shared-memory", lambda: [name for name in os.listdir("/dev/shm") if name == "secret"])
attempt("sysv", lambda: call(libc.shmget, 0x7472, 4096, 0o666))
attempt("sysv-list", lambda: len(open("/proc/sysvipc/shm").readlines()) > 1)
attempt("other-processes", lambda: [pid for pid in glob.glob("/proc/[0-9]*") if "victim" in open(pid + "/cmdline").read()])
attempt("new-namespace", lambda: call(libc.unshare, 0x10000000))
attempt("device", lambda: os.mknod("/tmp/disk", 0o660 | 0o060000, os.makedev(254, 0)) or "made")
attempt("null-device", lambda: os.mknod("/tmp/null", 0o666 | 0o020000, os.makedev(1, 3)) or "made")
attempt("root-of-machine", lambda: open("/proc/self/uid_map").read().split()[1] == "0")
attempt("same-ids-as-victim", lambda: open("/proc/self/uid_map").read().split()[1] == sys.argv[4])
for path in ("/dev/null", "/usr", "/usr/bin/env", "/etc/passwd"):
    attempt("chmod-" + path, lambda: os.chmod(path, 0o600) or "changed")
    attempt("chown-" + path, lambda: os.chown(path, 0, 0) or "changed")
attempt("cgroup", lambda: [os.mkdir(path + "/owned") or path for path in glob.glob("/sys/fs/cgroup/*")])
attempt("module", lambda: call(libc.syscall, 175, None, 0, None))
attempt("bpf", lambda: call(libc.syscall, 321, 0, None, 0))
attempt("keyring", lambda: call(libc.syscall, 250, 0, -3, 0))
print("attempts over", flush=True)
"""

EXPECTED_MIN = 39


def attempts_of_a_hostile_job(server):
    """What it says of each attempt, beside a victim of the same server."""
    s3, sagemaker, logs = server.boto("s3"), server.boto("sagemaker"), server.boto("logs")
    s3.create_bucket(Bucket="yard")

    def python(name, script, *arguments):
        request = jobs.request(name)
        request["AlgorithmSpecification"] |= {"ContainerEntrypoint": ["/usr/bin/python3", "/opt/ml/input/data/code/script.py"]}
        request["AlgorithmSpecification"].pop("ContainerArguments")
        if arguments:
            request["AlgorithmSpecification"]["ContainerArguments"] = list(arguments)
        s3.put_object(Bucket="yard", Key=f"code/{name}/script.py", Body=script.encode())
        request["InputDataConfig"] = [{"ChannelName": "code", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://yard/code/{name}/"}}}]
        sagemaker.create_training_job(**request)

    python("victim", VICTIM)
    line = wait_for(lambda: next((one for one in jobs.log_lines(logs, "victim") if one.startswith("victim")), None), "the victim")
    _, address, _, segment, ids = line.split()
    assert segment == "True"
    python("hostile", HOSTILE, address, server.data, server.listen.rsplit(":", 1)[1], ids)
    done = jobs.wait_until(sagemaker, "hostile")
    lines = jobs.log_lines(logs, "hostile")
    assert "attempts over" in lines, (done.get("FailureReason"), lines)
    assert server.boto("sts").get_caller_identity()["Account"], "and the server is well"
    assert not os.path.exists("/usr/bin/owned")
    sagemaker.stop_training_job(TrainingJobName="victim")
    return lines


def test_everything_is_refused(start):
    lines = attempts_of_a_hostile_job(start("[[machine]]\nname = 'box'\ncpus = 8.0\nmemory_gib = 32.0\n"))
    assert not [one for one in lines if "REACHED" in one]
    assert len([one for one in lines if " refused" in one]) >= EXPECTED_MIN
