"""Lists attacks of a process, root inside its container, on the machine and on another job's
container.

`attempt` is a Python expression. It raises OSError if the kernel rejects it, or is false or empty
if there is nothing to reach."""

from tests.hostile.table import JOB_LOG, Attack

# The attacked job: it has the secrets that an attacker would search.
PROBED_JOB = r"""
import ctypes, os, socket, subprocess, time
libc = ctypes.CDLL(None, use_errno=True)
segment = libc.shmget(0x7472, 4096, 0o1666)
open("/dev/shm/secret", "w").write("secret")
open("/tmp/secret", "w").write("secret")
os.environ["SECRET"] = "secret"
server = socket.create_server(("0.0.0.0", 9000))
hidden = socket.socket(socket.AF_UNIX)
hidden.bind("\0victim")
hidden.listen()
address = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()[0]
print("victim", address, "segment", segment >= 0, open("/proc/self/uid_map").read().split()[1], flush=True)
time.sleep(1000)
"""

# Arguments: the attacked host's address, the server's data directory, its port,
# the first id of the attacked host on the machine.
ATTACKER = r"""
import ctypes, errno, glob, json, os, signal, socket, struct, sys, time
victim, data, port, victims_ids = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
libc = ctypes.CDLL(None, use_errno=True)

def call(function, *arguments):
    result = function(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "returned " + str(result)

def syscall(number, *arguments):
    return call(libc.syscall, number, *arguments)

def connect(host, to, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind) as one:
        one.settimeout(1)
        one.connect((host, to))
        return f"connected to {host}:{to}"

def answer_of(host, to):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(1)
        one.connect((host, to))
        one.send(b"x")
        return one.recv(1)

def unix(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(path)
        return "connected"

def read(path, count=1):
    with open(path, "rb") as file:
        return file.read(count)

def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return "written"

def processes(word):
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            found += [path] if word in read(path, 4096).decode(errors="replace") else []
        except OSError:
            pass
    return found

def out_of_chroot():
    os.makedirs("/tmp/c", exist_ok=True)
    top = os.open("/", os.O_RDONLY)
    os.chroot("/tmp/c")
    os.fchdir(top)
    for _ in range(64):
        os.chdir("..")
    os.chroot(".")
    return os.path.exists(data)

def in_a_child(work):
    "What changes the process itself is tried in a child, whose answer is passed on."
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = repr(work() or "")
        except OSError as fault:
            answer = f"OSError({fault.errno}, '')"
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    text = os.read(reader, 1 << 16).decode()
    os.waitpid(child, 0)
    answer = eval(text)
    if isinstance(answer, OSError):
        raise answer
    return answer

def add_route():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as one:
        one.bind((0, 0))
        one.send(struct.pack("<IHHII", 28, 24, 0x605, 1, 0) + bytes(12))  # RTM_NEWROUTE, which is acknowledged
        failure = struct.unpack_from("<i", one.recv(4096), 16)[0]
    if failure:
        raise OSError(-failure, "")
    return "changed"

def timestamps(path):
    os.utime(path)
    return "changed"

gateway = next(".".join(str(int(line.split()[2][i:i + 2], 16)) for i in (6, 4, 2, 0))
               for line in open("/proc/net/route").readlines()[1:] if line.split()[1] == "00000000")
for name, expression in json.load(open("/opt/ml/input/data/code/attempts.json")):
    try:
        got = eval(expression)
        print("TRIED", name, f"REACHED {got!r}"[:300] if got else "absent", flush=True)
    except OSError as fault:
        print("TRIED", name, errno.errorcode.get(fault.errno, "timeout" if isinstance(fault, TimeoutError) else repr(fault)), flush=True)
    except Exception as fault:  # the attempt itself is wrong
        print("TRIED", name, "broken", repr(fault), flush=True)
print("attempts over", flush=True)
"""


def row(name: str, tried: str, attempt: str, refused: str) -> Attack:
    return Attack(name, tried, rf"^({refused})$", JOB_LOG, attempt)


# The errors of a missing permission, of a missing file, and of an unreachable address.
DENIED, ABSENT = "EPERM|EACCES", "absent|ENOENT"
UNREACHED = "timeout|ETIMEDOUT|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EACCES|EPERM|EINVAL"
NO_CALL = "EPERM|ENOSYS"
READ_ONLY = "EROFS|EPERM|EACCES"

FILES = (
    row(
        "data-directory",
        "list the server's data directory",
        "os.path.exists(data) and os.listdir(data)",
        ABSENT,
    ),
    row(
        "agents-socket",
        "connect to the server's socket for agents",
        "unix(data + '/agents.sock')",
        "ENOENT",
    ),
    row(
        "root-home",
        "list /root of the machine",
        "os.path.exists('/root') and os.listdir('/root')",
        ABSENT,
    ),
    row("shadow", "read the machine's password hashes", "read('/etc/shadow')", "ENOENT"),
    row(
        "ssh-keys",
        "read the machine's SSH keys",
        "glob.glob('/etc/ssh/*key*') + glob.glob('/root/.ssh/*')",
        ABSENT,
    ),
    row("write-usr", "write a program into /usr/bin", "write('/usr/bin/owned', 'x')", READ_ONLY),
    row("write-library", "replace a library", "write('/usr/lib/owned.so', 'x')", READ_ONLY),
    row(
        "unlink-program",
        "remove a program of the machine",
        "os.unlink('/usr/bin/env') or 'removed'",
        READ_ONLY,
    ),
    row(
        "rename-program",
        "rename a program of the machine",
        "os.rename('/usr/bin/env', '/usr/bin/env2') or 'renamed'",
        READ_ONLY,
    ),
    row(
        "truncate-passwd",
        "empty /etc/passwd",
        "os.truncate('/etc/passwd', 0) or 'emptied'",
        READ_ONLY,
    ),
    *(
        row(
            f"{change}-{path.strip('/').replace('/', '-')}",
            f"{change} {path}",
            expression.replace("PATH", path),
            READ_ONLY,
        )
        for path in ("/dev/null", "/usr", "/usr/bin/env", "/etc/passwd")
        for change, expression in (
            ("chmod", "os.chmod('PATH', 0o600) or 'changed'"),
            ("chown", "os.chown('PATH', 0, 0) or 'changed'"),
        )
    ),
    row(
        "setxattr",
        "give a program of the machine capabilities",
        "os.setxattr('/usr/bin/env', 'security.capability', b'x') or 'set'",
        READ_ONLY + "|EOPNOTSUPP|EINVAL",
    ),
    row(
        "utime",
        "change the times of a program of the machine",
        "timestamps('/usr/bin/env')",
        READ_ONLY,
    ),
    row(
        "open-by-handle",
        "open a file of the machine by its inode (open_by_handle_at)",
        "syscall(304, -100, b'\\0' * 24, 0)",
        NO_CALL,
    ),
    row(
        "file-handle",
        "make a file handle (name_to_handle_at)",
        "syscall(303, -100, b'/', b'\\0' * 128, b'\\0' * 8, 0)",
        NO_CALL + "|EOVERFLOW|EINVAL",
    ),
    row("out-of-chroot", "leave the root by chroot and ..", "in_a_child(out_of_chroot)", ABSENT),
    row(
        "device-node",
        "make a node of the machine's disk",
        "os.mknod('/tmp/disk', 0o060660, os.makedev(254, 0)) or 'made'",
        DENIED,
    ),
    row(
        "null-node",
        "make a node of /dev/null",
        "os.mknod('/tmp/null', 0o020666, os.makedev(1, 3)) or 'made'",
        DENIED,
    ),
    row("memory-device", "open the machine's memory", "read('/dev/mem')", "ENOENT"),
    row("log-device", "read the kernel's log", "read('/dev/kmsg')", "ENOENT"),
    row(
        "disks",
        "find a disk in /dev",
        "glob.glob('/dev/sd*') + glob.glob('/dev/vd*') + glob.glob('/dev/nvme*') +"
        " glob.glob('/dev/loop*')",
        ABSENT,
    ),
)

KERNEL = (
    row(
        "mount-tmpfs",
        "mount a file system",
        "call(libc.mount, b'none', b'/tmp', b'tmpfs', 0, None)",
        NO_CALL,
    ),
    row(
        "bind-mount",
        "mount /usr elsewhere",
        "call(libc.mount, b'/usr', b'/tmp', None, 4096, None)",
        NO_CALL,
    ),
    row(
        "remount",
        "make /usr writable",
        "call(libc.mount, None, b'/usr', None, 32 | 4096, None)",
        NO_CALL,
    ),
    row("umount", "unmount /proc", "call(libc.umount2, b'/proc', 2)", NO_CALL),
    row("open-tree", "clone a mount (open_tree)", "syscall(428, -100, b'/usr', 1)", NO_CALL),
    row("fsopen", "make a file system (fsopen)", "syscall(430, b'tmpfs', 0)", NO_CALL),
    row(
        "move-mount",
        "move a mount (move_mount)",
        "syscall(429, -100, b'/usr', -100, b'/tmp', 0)",
        NO_CALL,
    ),
    row(
        "mount-setattr",
        "change a mount (mount_setattr)",
        "syscall(442, -100, b'/usr', 0, b'\\0' * 32, 32)",
        NO_CALL,
    ),
    row("pivot-root", "change the root (pivot_root)", "syscall(155, b'/tmp', b'/tmp')", NO_CALL),
    row(
        "new-user-namespace",
        "make a user namespace",
        "in_a_child(lambda: call(libc.unshare, 0x10000000))",
        NO_CALL,
    ),
    row(
        "new-mount-namespace",
        "make a mount namespace",
        "in_a_child(lambda: call(libc.unshare, 0x00020000))",
        NO_CALL,
    ),
    row(
        "new-network-namespace",
        "make a network namespace",
        "in_a_child(lambda: call(libc.unshare, 0x40000000))",
        NO_CALL,
    ),
    row(
        "clone-namespace",
        "clone into a new user namespace (clone3)",
        "syscall(435, struct.pack('<11Q', 0x10000000, *[0] * 10), 88)",
        NO_CALL,
    ),
    row(
        "setns",
        "enter a namespace by descriptor",
        "call(libc.setns, os.open('/proc/self/ns/mnt', os.O_RDONLY), 0)",
        NO_CALL,
    ),
    row("io-uring", "io_uring_setup", "syscall(425, 8, b'\\0' * 120)", NO_CALL),
    row("bpf", "load a BPF program", "syscall(321, 5, b'\\0' * 120, 120)", NO_CALL),
    row("perf", "perf_event_open", "syscall(298, b'\\0' * 120, -1, 0, -1, 0)", NO_CALL + "|EACCES"),
    row("userfaultfd", "userfaultfd", "syscall(323, 0)", NO_CALL),
    row(
        "personality",
        "turn address randomisation off (personality)",
        "in_a_child(lambda: syscall(135, 0x0040000))",
        NO_CALL,
    ),
    row("init-module", "load a kernel module", "syscall(175, None, 0, None)", NO_CALL),
    row("delete-module", "unload a kernel module", "syscall(176, b'ext4', 0)", NO_CALL),
    row("kexec", "load another kernel", "syscall(246, 0, 0, None, 0)", NO_CALL),
    row(
        "reboot",
        "restart the machine",
        "syscall(169, 0xfee1dead, 672274793, 0x89abcdef, None)",
        NO_CALL,
    ),
    row("swapon", "add swap", "syscall(167, b'/tmp/x', 0)", NO_CALL),
    row("settime", "set the clock", "syscall(227, 0, struct.pack('<qq', 0, 0))", NO_CALL),
    row("sethostname", "rename the machine", "call(libc.sethostname, b'owned', 5)", NO_CALL),
    row(
        "syslog",
        "read the kernel's log (syslog)",
        "syscall(103, 3, ctypes.create_string_buffer(100), 100)",
        NO_CALL,
    ),
    row("keyring", "use the kernel's keyring", "syscall(250, 0, -3, 0)", NO_CALL),
    row(
        "add-key",
        "add a key to the kernel's keyring",
        "syscall(248, b'user', b'a', b'b', 1, -3)",
        NO_CALL,
    ),
    row("iopl", "use the machine's ports", "syscall(172, 3)", NO_CALL),
    row("quota", "change disk quotas", "syscall(179, 0x80000200, b'/dev/sda', 0, None)", NO_CALL),
    row("acct", "turn accounting on", "syscall(163, b'/tmp/x')", NO_CALL),
    row(
        "realtime",
        "take a real-time priority",
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)) or 'taken'",
        DENIED,
    ),
    row("nice", "raise its priority", "os.nice(-10) or 'raised'", DENIED),
    row(
        "lift-limit",
        "lift a hard limit",
        "call(libc.setrlimit, 8, struct.pack('<QQ', 1 << 40, 1 << 40))",
        DENIED,
    ),
)

PROC = (
    row(
        "sysrq",
        "crash the machine by /proc/sysrq-trigger",
        "write('/proc/sysrq-trigger', 'h')",
        READ_ONLY + "|ENOENT",
    ),
    row(
        "core-pattern",
        "have the kernel start a program (core_pattern)",
        "write('/proc/sys/kernel/core_pattern', '|/tmp/x')",
        READ_ONLY,
    ),
    row(
        "proc-sys",
        "change a kernel setting",
        "write('/proc/sys/vm/overcommit_memory', '1')",
        READ_ONLY,
    ),
    row("kcore", "read the kernel's memory", "read('/proc/kcore')", "absent|EACCES|EPERM|ENOENT"),
    row(
        "kallsyms",
        "read the kernel's addresses",
        "read('/proc/kallsyms')",
        "absent|EACCES|EPERM|ENOENT",
    ),
    row(
        "uevent-helper",
        "have the kernel start a program (uevent_helper)",
        "write('/sys/kernel/uevent_helper', '/tmp/x')",
        READ_ONLY + "|ENOENT",
    ),
    row("power", "suspend the machine", "write('/sys/power/state', 'mem')", READ_ONLY + "|ENOENT"),
    row(
        "release-agent",
        "have the kernel start a program (release_agent)",
        "[write(path, '/tmp/x') for path in glob.glob('/sys/fs/cgroup/**/release_agent',"
        " recursive=True)]",
        ABSENT,
    ),
    row(
        "cgroup",
        "make a cgroup",
        "[os.mkdir(path + '/owned') or path for path in glob.glob('/sys/fs/cgroup/*')]",
        ABSENT,
    ),
    row(
        "oom-score",
        "be the last to be killed when memory is short",
        "write('/proc/self/oom_score_adj', '-1000')",
        DENIED,
    ),
    row(
        "id-map",
        "map further ids of the machine",
        "write('/proc/self/uid_map', '0 0 4294967295')",
        DENIED,
    ),
    row(
        "root-of-machine",
        "be root of the machine",
        "read('/proc/self/uid_map', 100).split()[1] == b'0'",
        "absent",
    ),
    row(
        "initial-namespace",
        "find the root of the machine in /proc/1/root",
        "os.path.exists('/proc/1/root' + data)",
        "absent",
    ),
)

NEIGHBOUR = (
    row("neighbours-port", "connect to a port of another job", "connect(victim, 9000)", UNREACHED),
    row(
        "neighbours-udp",
        "get an answer from a UDP port of another job",
        "answer_of(victim, 9)",
        UNREACHED,
    ),
    row(
        "neighbours-abstract-socket",
        "connect to an abstract socket of another job",
        "unix('\\0victim')",
        "ECONNREFUSED",
    ),
    row(
        "neighbours-abstract-list",
        "see an abstract socket of another job",
        "b'victim' in read('/proc/net/unix', 1 << 20)",
        "absent",
    ),
    row(
        "neighbours-shared-memory",
        "read /dev/shm of another job",
        "[name for name in os.listdir('/dev/shm') if name == 'secret']",
        "absent",
    ),
    row(
        "neighbours-tmp",
        "read /tmp of another job",
        "[name for name in os.listdir('/tmp') if name == 'secret']",
        "absent",
    ),
    row(
        "neighbours-sysv",
        "attach a System V segment of another job",
        "call(libc.shmget, 0x7472, 4096, 0o666)",
        "ENOENT",
    ),
    row(
        "neighbours-sysv-list",
        "see a System V segment of another job",
        "len(open('/proc/sysvipc/shm').readlines()) > 1",
        "absent",
    ),
    row("neighbours-processes", "see a process of another job", "processes('9000')", "absent"),
    row(
        "neighbours-ids",
        "have the ids of another job",
        "open('/proc/self/uid_map').read().split()[1] == victims_ids",
        "absent",
    ),
    row(
        "kill-unseen",
        "signal a process outside",
        "[os.kill(number, 0) or number for number in range(2, 60) if number != os.getpid()]",
        "ESRCH",
    ),
    row(
        "ptrace-init",
        "attach to the container's first process",
        "call(libc.ptrace, 16, 1, None, None)",
        "EPERM|EIO",
    ),
    row(
        "process-memory",
        "read the memory of a process that is not there",
        "syscall(310, 99999, None, 0, None, 0, 0)",
        "ESRCH|EPERM|ENOSYS|absent",
    ),
)

NETWORK = (
    row(
        "server-by-gateway",
        "connect to the server's port at the gateway",
        "connect(gateway, port)",
        UNREACHED,
    ),
    row(
        "server-by-loopback",
        "connect to the server's port at 127.0.0.1",
        "connect('127.0.0.1', port)",
        "ECONNREFUSED",
    ),
    row("ssh-of-machine", "connect to the machine's SSH", "connect(gateway, 22)", UNREACHED),
    row("dns-of-machine", "connect to a service of the machine", "connect(gateway, 53)", UNREACHED),
    row(
        "aws-metadata", "query AWS's metadata service", "connect('169.254.169.254', 80)", UNREACHED
    ),
    row(
        "azure-metadata",
        "query Azure's metadata service",
        "connect('168.63.129.16', 80)",
        UNREACHED,
    ),
    row(
        "alibaba-metadata",
        "query Alibaba's metadata service",
        "connect('100.100.100.200', 80)",
        UNREACHED,
    ),
    row(
        "metadata-by-ipv6",
        "query AWS's metadata service by IPv6",
        "connect('fd00:ec2::254', 80)",
        UNREACHED + "|EADDRNOTAVAIL|EAFNOSUPPORT",
    ),
    row(
        "private-network", "connect into a private network", "connect('192.168.0.1', 80)", UNREACHED
    ),
    row(
        "raw-socket",
        "open a raw socket",
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        DENIED,
    ),
    row(
        "packet-socket",
        "listen to all packets",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)",
        DENIED + "|EAFNOSUPPORT|ENOSYS",
    ),
    row(
        "vsock",
        "open a socket to the hypervisor",
        "socket.socket(40, socket.SOCK_STREAM)",
        DENIED + "|EAFNOSUPPORT|EINVAL",
    ),
    row(
        "kernel-crypto",
        "open a socket of the kernel's cryptography",
        "socket.socket(38, socket.SOCK_SEQPACKET)",
        DENIED + "|EAFNOSUPPORT",
    ),
    row("change-route", "change the routes of its network", "add_route()", DENIED),
    row(
        "low-port-of-agent",
        "take the address of its credentials",
        "socket.create_server(('169.254.170.2', 80)) and 'taken'",
        "EADDRINUSE|EADDRNOTAVAIL|EACCES",
    ),
)

GROUPS = {
    "files of the machine": FILES,
    "kernel": KERNEL,
    "/proc and /sys": PROC,
    "another job": NEIGHBOUR,
    "network": NETWORK,
}
ATTACKS = tuple(attack for group in GROUPS.values() for attack in group)
