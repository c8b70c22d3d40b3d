"""PostgreSQL of the distribution, and clients beside it that commit rows: examples/services/postgresql.yaml."""

import json
import re
from typing import Any

from support.eventually import eventually
from support.services import example, free_port
from support.up import Up, settled

PERIOD = 100_000
MI = 1 << 20
KERNEL = """
cd /sys/fs/cgroup
if [ -e cpu.max ]; then cat cpu.max memory.max; else
cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us memory/memory.limit_in_bytes; fi
"""


class Database:
    """The example's pod, and another that commits rows: each of its clients keeps one connection.

    With `replicated` it is the only pod of a StatefulSet, `postgresql-0`.
    """

    def __init__(self, up: Up, *, clients: int = 40, replicated: bool = False) -> None:
        self.up, self.port, self.clients, self.replicated = up, free_port(), clients, replicated
        self.pod = "postgresql-0" if replicated else "postgresql"
        self.uid = ""

    def start(self) -> None:
        (pod,) = example("postgresql", 5432, self.port)
        self.up.apply(stateful(pod) if self.replicated else pod)
        self.up.ok("wait", "--for=create", f"pod/{self.pod}", "--timeout=60s")
        self.up.ok("wait", "--for=condition=Ready", f"pod/{self.pod}", "--timeout=60s")
        self.uid = str(self.up.get("pod", self.pod)["metadata"]["uid"])
        self.ask("CREATE TABLE rows (client int, number bigserial PRIMARY KEY)")

    def ask(self, statement: str) -> str:
        return self.up.ok("exec", self.pod, "-c", "server", "--", "psql", "--tuples-only", "-A", "-c", statement)

    def begin_load(self) -> None:
        script = "echo 'INSERT INTO rows (client) VALUES (:client_id)' >/tmp/one.sql; exec pgbench --no-vacuum"
        where = f"--host=127.0.0.1 --port={self.port} --username=postgres"
        container = {
            "name": "clients",
            "image": "localhost/postgresql:distribution",
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", f"{script} {where} -c {self.clients} -T 3600 -f /tmp/one.sql postgres"],
            "resources": {"limits": {"cpu": "300m"}},
        }
        spec = {"hostNetwork": True, "restartPolicy": "Never", "containers": [container]}
        self.up.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "clients"}, "spec": spec})
        self.commits_more(0)

    def commits_more(self, than: int) -> int:
        """The number of rows, once there are more."""
        return eventually(
            lambda: int(self.ask("SELECT count(*) FROM rows")),
            lambda rows: rows > than,
            within=30,
            what=f"more than {than} rows",
            told=lambda: self.up.ok("logs", "clients"),
        )

    def end_load(self) -> int:
        """What the clients were told to be committed. They end by the signal that their own time limit gives them."""
        self.up.ok("exec", "clients", "--", "sh", "-c", "kill -ALRM 1")
        ended = self.up.pod_when("clients", lambda pod: pod["status"]["phase"] not in ("Pending", "Running"), "ended")
        said = self.up.ok("logs", "clients")
        assert ended["status"]["phase"] == "Succeeded", said
        assert "aborted" not in said
        assert "number of failed transactions: 0 " in said
        found = re.search(r"number of transactions actually processed: (\d+)", said)
        assert found is not None, said
        return int(found[1])

    def resize(self, size: dict[str, dict[str, str]]) -> None:
        """Until the node says that it is done, and the kernel does."""
        change = {"spec": {"containers": [{"name": "server", "resources": size}]}}
        self.up.ok("patch", "pod", self.pod, "--subresource", "resize", "-p", json.dumps(change))
        self.up.pod_when(self.pod, lambda pod: settled(pod) and given(pod) == size, f"got {size}")
        said = self.up.ok("exec", self.pod, "-c", "server", "--", "sh", "-c", KERNEL).split()
        cpu, memory = int(size["limits"]["cpu"][:-1]), int(size["limits"]["memory"][:-2])
        assert said == [str(cpu * PERIOD // 1000), str(PERIOD), str(memory * MI)]

    def stop(self) -> str:
        """What it says when its pod is deleted."""
        with self.up.follows(self.pod, "server") as log:
            log.readline()
            self.up.ok("delete", "pod", self.pod)
            return log.read()


def given(pod: dict[str, Any]) -> object:
    return pod["status"]["containerStatuses"][0]["resources"]


def stateful(pod: dict[str, Any]) -> dict[str, Any]:
    """A StatefulSet whose template is this pod."""
    name = pod["metadata"]["name"]
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
    spec = {"serviceName": name, "replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec}
