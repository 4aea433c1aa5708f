"""Runs a Kubernetes control plane for tests: etcd, API server, controllers and scheduler, built by
tests/kubernetes/prepare. The API server is at this machine's address on the bridge of network.py,
the others on loopback. nodes.py has the nodes."""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import yaml  # type: ignore[import-untyped]

from tests.kubernetes.network import GATEWAY, make_network, remove_network
from tests.ports import free_port
from tests.trainyard_server import ROOT, wait_for

PROGRAMS = os.path.join(ROOT, "build", "kubernetes")
RIGHTS = os.path.join(ROOT, "packaging", "kubernetes", "rbac.yaml")
KUEUE_RIGHTS = os.path.join(ROOT, "packaging", "kubernetes", "rbac-kueue.yaml")
NAMESPACE = "trainyard"
STOP_SECONDS_MAX = 20
# By default, controllers and scheduler send few requests a second.
UNLIMITED = ("--kube-api-qps=1000", "--kube-api-burst=1000")
REQUEST_SECONDS_MAX = 30
ADMIN_TOKEN = "admin-of-the-tests"
SERVICE_ACCOUNT = f"system:serviceaccount:{NAMESPACE}:trainyard"
# The API server records the requests of Trainyard's service account when it has answered them, or
# accepted them in the case of watches.
AUDIT_POLICY = f"""
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    users: ["{SERVICE_ACCOUNT}"]
  - level: None
"""

Object = dict[str, Any]


def read_rights(path: str) -> list[Object]:
    with open(path, encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


class Refused(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class Cluster:
    def __init__(self, directory: str, node_seconds: int = 86400, pod_seconds: int = 300) -> None:
        """`node_seconds`: without heartbeats, until a node counts as not ready. By default, tests
        mark lost nodes, as theirs send none. `pod_seconds`: then, until its pods are deleted."""
        self.directory = directory
        self.node_seconds, self.pod_seconds = node_seconds, pod_seconds
        self.processes: list[subprocess.Popen[bytes]] = []
        self.apiserver: subprocess.Popen[bytes] | None = None
        self.etcd_port, self.peer_port, self.port = free_port(), free_port(), free_port()
        self.url = f"https://{GATEWAY}:{self.port}"
        self.trust: ssl.SSLContext | None = None

    def at(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def write(self, name: str, text: str) -> str:
        with open(os.open(self.at(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
            out.write(text)
        return self.at(name)

    # -- processes --------------------------------------------------------------------------------

    def start(self) -> Cluster:
        make_network()
        self.make_certificates()
        self.write("audit.yaml", AUDIT_POLICY)
        self.write("tokens.csv", f'{ADMIN_TOKEN},admin,1,"system:masters"\n')
        self.launch(
            "etcd",
            [os.path.join(PROGRAMS, "etcd")],
            f"--data-dir={self.at('etcd')}",
            f"--listen-client-urls=http://127.0.0.1:{self.etcd_port}",
            f"--advertise-client-urls=http://127.0.0.1:{self.etcd_port}",
            f"--listen-peer-urls=http://127.0.0.1:{self.peer_port}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{self.peer_port}",
            f"--initial-cluster=default=http://127.0.0.1:{self.peer_port}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )
        self.start_apiserver()
        kubeconfig = self.write("admin.json", json.dumps(self.kubeconfig(ADMIN_TOKEN)))
        self.launch(
            "controllers",
            self.program("kube-controller-manager"),
            f"--kubeconfig={kubeconfig}",
            f"--service-account-private-key-file={self.at('accounts.key')}",
            f"--root-ca-file={self.at('ca.crt')}",
            "--use-service-account-credentials=false",
            "--leader-elect=false",
            *UNLIMITED,
            f"--node-monitor-grace-period={self.node_seconds}s",
            "--node-monitor-period=1s",
            f"--secure-port={free_port()}",
            "--bind-address=127.0.0.1",
        )
        self.launch(
            "scheduler",
            self.program("kube-scheduler"),
            f"--kubeconfig={kubeconfig}",
            *UNLIMITED,
            "--leader-elect=false",
            f"--secure-port={free_port()}",
            "--bind-address=127.0.0.1",
        )
        for each in read_rights(RIGHTS):
            self.create(each)
        return self

    def start_apiserver(self) -> None:
        self.apiserver = self.launch(
            "apiserver",
            self.program("kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            f"--bind-address={GATEWAY}",
            "--endpoint-reconciler-type=none",
            f"--secure-port={self.port}",
            f"--tls-cert-file={self.at('server.crt')}",
            f"--tls-private-key-file={self.at('server.key')}",
            f"--client-ca-file={self.at('ca.crt')}",
            f"--token-auth-file={self.at('tokens.csv')}",
            "--authorization-mode=RBAC",
            f"--audit-policy-file={self.at('audit.yaml')}",
            f"--audit-log-path={self.at('audit.log')}",
            "--allow-privileged=true",
            f"--default-not-ready-toleration-seconds={self.pod_seconds}",
            f"--default-unreachable-toleration-seconds={self.pod_seconds}",
            "--service-cluster-ip-range=10.219.80.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.at('accounts.pub')}",
            f"--service-account-signing-key-file={self.at('accounts.key')}",
        )
        wait_for(self.answers, "the API server to be ready")

    def kill_apiserver(self) -> None:
        assert self.apiserver
        self.apiserver.kill()
        self.apiserver.wait()
        self.processes.remove(self.apiserver)

    def etcd(self, call: str, body: Object) -> Object:
        """Calls etcd, whose keys are in base64."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.etcd_port}/v3/kv/{call}", data=json.dumps(body).encode()
        )
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS_MAX) as answer:
            return json.load(answer)

    def delete_in_etcd(self, key: str) -> None:
        """Deletes an object while the API server is down."""
        deleted = self.etcd("deleterange", {"key": base64.b64encode(key.encode()).decode()})
        assert deleted.get("deleted") == "1", deleted

    def compact_etcd(self) -> None:
        """Lets etcd forget all changes until now."""
        some = self.etcd("range", {"key": base64.b64encode(b"/").decode()})
        self.etcd("compaction", {"revision": some["header"]["revision"], "physical": True})

    @staticmethod
    def program(name: str) -> list[str]:
        return [os.path.join(PROGRAMS, "kubernetes"), name]

    def launch(self, name: str, program: list[str], *arguments: str) -> subprocess.Popen[bytes]:
        with open(self.at(name + ".log"), "ab") as log:
            process = subprocess.Popen(
                [*program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.processes.append(process)
        return process

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait(STOP_SECONDS_MAX)
        remove_network()

    def make_certificates(self) -> None:
        def openssl(*arguments: str) -> None:
            subprocess.run(
                ["openssl", *arguments], cwd=self.directory, check=True, capture_output=True
            )

        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=tests")
        for name, subject in (
            ("server", "/CN=apiserver"),
            ("client", "/O=system:masters/CN=client"),
        ):
            openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
            self.write("names", f"subjectAltName=IP:{GATEWAY}")
            signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names")
            openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.crt")
        openssl("genrsa", "-out", "accounts.key", "2048")
        openssl("rsa", "-in", "accounts.key", "-pubout", "-out", "accounts.pub")
        self.trust = ssl.create_default_context(cafile=self.at("ca.crt"))

    # -- credentials ------------------------------------------------------------------------------

    def kubeconfig(self, token: str = "", **user: str) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tests",
            "contexts": [
                {
                    "name": "tests",
                    "context": {"cluster": "tests", "user": "tests", "namespace": NAMESPACE},
                }
            ],
            "clusters": [
                {
                    "name": "tests",
                    "cluster": {"server": self.url, "certificate-authority": self.at("ca.crt")},
                }
            ],
            "users": [{"name": "tests", "user": user or {"token": token}}],
        }

    def account_token(self, name_space: str = NAMESPACE, name: str = "trainyard") -> str:
        """Returns a token of a service account; by default of the one in rbac.yaml."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"/api/v1/namespaces/{name_space}/serviceaccounts/{name}/token"
        token = self.call("POST", path, request)["status"]["token"]
        assert isinstance(token, str)
        return token

    # -- what the service account has requested ----------------------------------------------------

    def audited(self, since: int = 0) -> list[Object]:
        """Returns the audit events of Trainyard's requests, without the first `since` ones."""
        try:
            with open(self.at("audit.log"), encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("\n")][since:]
        except FileNotFoundError:
            return []

    # -- requests ---------------------------------------------------------------------------------

    def call(
        self, method: str, path: str, body: Object | None = None, kind: str = "application/json"
    ) -> Object:
        request = urllib.request.Request(
            self.url + path,
            data=json.dumps(body).encode() if body is not None else None,
            method=method,
            headers={"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": kind},
        )
        try:
            with urllib.request.urlopen(
                request, context=self.trust, timeout=REQUEST_SECONDS_MAX
            ) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode(errors="replace")) from None

    def answers(self) -> bool:
        try:
            self.call("GET", "/api/v1/namespaces/default")
            return True
        except (Refused, OSError):
            return False

    def create(self, thing: Object, query: str = "") -> Object:
        group = thing["apiVersion"]
        root = f"/api/{group}" if group == "v1" else f"/apis/{group}"
        name_space = thing["metadata"].get("namespace")
        within = f"/namespaces/{name_space}" if name_space else ""
        kind = re.sub("y$", "ie", thing["kind"].lower())
        return self.call("POST", f"{root}{within}/{kind}s{query}", thing)

    def patch(self, path: str, change: Object) -> Object:
        return self.call("PATCH", path, change, "application/merge-patch+json")

    def delete_job(self, name: str) -> None:
        path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}"
        self.call("DELETE", path, {"propagationPolicy": "Foreground"})

    def pods(self) -> list[Object]:
        return self.call("GET", "/api/v1/pods")["items"]

    def gang_objects(self, name_space: str = NAMESPACE) -> dict[str, list[Object]]:
        """Returns all objects with the label of a server, by the names of the resources."""
        selector = urllib.parse.quote("trainyard/server")
        found = {}
        for name, root in (
            ("jobs", "/apis/batch/v1"),
            ("pods", "/api/v1"),
            ("secrets", "/api/v1"),
            ("services", "/api/v1"),
            ("networkpolicies", "/apis/networking.k8s.io/v1"),
        ):
            path = f"{root}/namespaces/{name_space}/{name}?labelSelector={selector}"
            found[name] = self.call("GET", path)["items"]
        return found

    @staticmethod
    def secret_texts(secret: Object) -> dict[str, str]:
        return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}

    def is_empty(self) -> bool:
        return not any(self.gang_objects().values())
