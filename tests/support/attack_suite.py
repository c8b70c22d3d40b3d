"""An attack on a whole cluster: every role sends to every resource and subresource what exceeds some bound.

    with bounded(path, node="simulated") as victim:
        suite = Suite(victim, seed)
        for attack in suite.chosen(300):
            suite.send(attack)

`chosen` begins with one attack for each pair of role and bound, and for each role's verb of each resource, as far as
the count goes, shuffled by the seed. What is answered is judged where it is sent (`Suite.send`); what it cost the
cluster is measured around it (`Victim.measure`).
"""

import http.client
import random
import shutil
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest
from typing import Any, NamedTuple

from podfit.net.authority import Authority
from podfit.net.system import SystemClock
from podfit.net.wire import Identity
from support.attack_payloads import APPLY, FACTORS, Payload, payloads
from support.bounded import Victim
from support.role_attack import LIMITED_RULES, MINE, ROLES, TARGET, Attempt, attempts, permitted

ADMINISTRATOR, ACCOUNT = "cluster-admin", "service account"
HANGS_SECONDS = 60
RBAC = "/apis/rbac.authorization.k8s.io/v1"
TOO_LATE = 504
"""What upstream says of a resource version that is none yet."""
UNREACHABLE = ("proxy", "log", "exec", "attach", "portforward")
"""Subresources behind which something else answers, or is not there (503)."""
POD = {"containers": [{"name": "c", "image": "x"}]}


class Attack(NamedTuple):
    role: str
    attempt: Attempt
    payload: Payload
    factor: float

    def __str__(self) -> str:
        where = f"{self.attempt.verb} {self.attempt.full} in {self.attempt.place or 'all'}"
        return f"{self.role}: {where}, {self.payload.bound} × {self.factor}"


class Suite:
    """Makes the roles when it is made. `wrong` is what broke the law, by what was sent."""

    def __init__(self, victim: Victim, seed: int) -> None:
        self.victim, self.random = victim, random.Random(seed)
        self.answers: Counter[int] = Counter()
        self.sent: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._tls: dict[str, ssl.SSLContext] = {}
        self._headers: dict[str, dict[str, str]] = {}
        self._connections: dict[str, http.client.HTTPSConnection] = {}
        self._make_roles()

    # ------------------------------------------------------------------ what is sent

    def chosen(self, count: int) -> list[Attack]:
        every = [attempt for attempt in attempts() if attempt.place in (MINE, "") and _spares_the_cluster(attempt)]
        self.random.shuffle(every)
        found = list(_alternating(self._each_bound(every), self._each_place(every)))
        while len(found) < count:
            found += self._each_place(self.random.sample(every, len(every)))
        return found[:count]

    def _each_bound(self, every: list[Attempt]) -> Iterator[Attack]:
        """Each role with each bound, where it may, if there is such a place."""
        for role in self._tls:
            mine = [attempt for attempt in every if attempt.role == _table(role)]
            mine.sort(key=lambda attempt: not permitted(attempt.role, attempt.question) and role != ADMINISTRATOR)
            for verb in ("list", "create", "patch"):
                able = [attempt for attempt in mine if attempt.verb == verb][:12]
                for payload in payloads(verb):
                    yield Attack(role, self.random.choice(able), payload, self.random.choice(FACTORS))

    def _each_place(self, every: list[Attempt]) -> Iterator[Attack]:
        """Each role's verb of each resource and subresource, with a bound by chance."""
        for attempt in every:
            payload = self.random.choice(payloads(attempt.verb))
            for role in self._tls:
                if _table(role) == attempt.role:
                    yield Attack(role, attempt, payload, self.random.choice(FACTORS))

    def send(self, attack: Attack) -> int:
        """The status. What may not be is written down."""
        method, path, small = attack.attempt.request()
        payload, factor = attack.payload, attack.factor
        query = "&".join(
            filter(
                None,
                (path.partition("?")[2], payload.query(factor), "fieldManager=attack" if payload.kind == APPLY else ""),
            )
        )
        body = payload.body(_small(attack.attempt, small), factor) if payload.body else None
        headers = {"Content-Type": payload.kind, **payload.headers(factor), **self._headers[attack.role]}
        path = path.partition("?")[0] + (f"?{query}" if query else "")
        self.victim.requests += 1
        self.sent[attack.role] += 1
        try:
            status = self._answer(attack.role, method, path, body, headers)
        except TimeoutError:
            status = 0
            self._connections.pop(attack.role).close()
        self.answers[status] += 1
        if reason := _unlawful(attack, status):
            self.wrong.append(f"{attack}: {status}, {reason}")
        return status

    def _answer(self, role: str, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> int:
        """On the role's connection, or a new one when the server has closed it."""
        for _ in range(2):
            connection = self._connections.get(role)
            if connection is None:
                connection = self._connections[role] = http.client.HTTPSConnection(
                    "127.0.0.1", self.victim.port, context=self._tls[role], timeout=HANGS_SECONDS
                )
            try:
                with suppress(BrokenPipeError, ConnectionResetError):  # refused before it was sent; the answer says why
                    connection.request(method, path, body, headers)
                answer = connection.getresponse()
            except (http.client.BadStatusLine, ConnectionError):
                self._connections.pop(role).close()
                continue
            if "watch=1" in path and answer.status == 200:
                self._connections.pop(role).close()
                return 200
            with suppress(http.client.IncompleteRead, ConnectionError):
                answer.read()
            if answer.will_close:
                self._connections.pop(role).close()
            return answer.status
        return -1

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    # ------------------------------------------------------------------ who sends

    def _make_roles(self) -> None:
        victim, directory = self.victim, self.victim.root / "roles"
        directory.mkdir()
        for name in ("ca.crt", "ca.key"):
            shutil.copy(next((victim.root / "data").rglob(name)), directory / name)
        authority = Authority.load(directory, clock=SystemClock(), make=False)
        for role, identity in ROLES.items():
            context = victim.tls(anonymous=True)
            if identity is not None:
                pair = authority.client(role, user=identity.user, groups=identity.groups)
                context.load_cert_chain(pair.certificate_file, pair.key_file)
            self._tls[role], self._headers[role] = context, {}
        self._tls[ADMINISTRATOR], self._headers[ADMINISTRATOR] = victim.tls(), {}
        self._tenant()
        answer = victim.ask("POST", f"/api/v1/namespaces/{MINE}/serviceaccounts/robot/token", {})
        token = answer.json()["status"]["token"]
        self._tls[ACCOUNT], self._headers[ACCOUNT] = victim.tls(anonymous=True), {"Authorization": f"Bearer {token}"}

    def _tenant(self) -> None:
        self._made("/api/v1/namespaces", {"metadata": {"name": MINE}})
        self._made(f"/api/v1/namespaces/{MINE}/serviceaccounts", {"metadata": {"name": "robot"}})
        self._made(f"{RBAC}/clusterroles", {"metadata": {"name": "limited"}, "rules": LIMITED_RULES})
        for role in ("view", "edit", "admin", "limited"):
            who = ROLES[role]
            assert who is not None
            place = f"{RBAC}/clusterrolebindings" if role == "limited" else f"{RBAC}/namespaces/{MINE}/rolebindings"
            self._made(place, _binding(role, role, who))
        for kind in ("configmaps", "secrets", "pods"):
            body: dict[str, Any] = {"metadata": {"name": TARGET}} | ({"spec": POD} if kind == "pods" else {})
            self._made(f"/api/v1/namespaces/{MINE}/{kind}", body)

    def _made(self, path: str, body: dict[str, Any]) -> None:
        answer = self.victim.ask("POST", path, body)
        assert answer.status == 201, answer.body


def _binding(name: str, role: str, who: Identity) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": who.user}],
    }


def _table(role: str) -> str:
    """Which role's rows of the table of rights a role sends; the administrator tries what the tenant's owner does."""
    return {ADMINISTRATOR: "admin", ACCOUNT: "authenticated"}.get(role, role)


def _spares_the_cluster(attempt: Attempt) -> bool:
    """Whether the cluster is still one to attack afterwards, when an administrator asks for it."""
    if attempt.verb == "deletecollection":
        return attempt.place == MINE and attempt.info.resource not in ("serviceaccounts", "rolebindings")
    return (attempt.verb, attempt.info.resource, attempt.subresource) != ("delete", "namespaces", "")


def _alternating(*ways: Iterator[Attack]) -> Iterator[Attack]:
    for row in zip_longest(*ways):
        yield from (attack for attack in row if attack is not None)


def _small(attempt: Attempt, body: Any) -> dict[str, Any]:
    """An object of the resource without anything wrong, where that takes no more than a name."""
    info = attempt.info
    small = {"apiVersion": info.group_version, "kind": info.kind, **(body or {})}
    if attempt.subresource:
        return dict(body or {})
    return small | {"spec": POD} if info.resource == "pods" else small


def _unlawful(attack: Attack, status: int) -> str:
    if status <= 0:
        return "no answer"
    if status >= 500 and status != TOO_LATE and attack.attempt.subresource not in UNREACHABLE:
        return "an error of the server"
    allowed = attack.role == ADMINISTRATOR or permitted(_table(attack.role), attack.attempt.question)
    if status < 400 and not allowed:
        return "it may not"
    return ""
