"""Pod Security Standards on inputs that no recorded case has: versions, relaxations, words, bounds."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.apiserver.admission.pod_security_standards.evaluate import (
    AUDITED,
    ENFORCED,
    PolicyVerdict,
    evaluate,
    is_significant,
    levels_of,
)
from podfit.apiserver.admission.pod_security_standards.existing import Tally, has_to_look, in_turn
from podfit.apiserver.admission.pod_security_standards.policy import PRIVILEGED, LevelVersion, Policy, policy_of
from podfit.apiserver.admission.pod_security_standards.registry import NEWEST, violations

GOOD: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
LABEL = "pod-security.kubernetes.io/"


def pod(spec: dict[str, Any] | None = None, annotations: dict[str, str] | None = None, **context: Any) -> Pod:
    """A pod with one container `a` of this security context."""
    container = {"name": "a", "image": "i", "securityContext": context}
    return convert(
        {
            "metadata": {"name": "p", "annotations": annotations or {}},
            "spec": {"containers": [container]} | (spec or {}),
        },
        Pod,
    )


def found(wanted: str, made: Pod) -> str:
    """What the level forbids, as a message lists it; `wanted` is `restricted` or `restricted:30`."""
    level, _, minor = wanted.partition(":")
    asked = convert({"level": level, "minor": int(minor) if minor else None}, LevelVersion)
    return ", ".join(map(str, violations(asked, made.metadata, made.spec)))


PROBE = {
    "startupProbe": {"tcpSocket": {"port": 1, "host": "b"}},
    "readinessProbe": {"httpGet": {"port": 1, "host": "a"}},
}
SECCOMP = {
    "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
    "container.seccomp.security.alpha.kubernetes.io/a": "docker/default",
}
SYSCTLS = [
    {"name": name, "value": "1"}
    for name in ("kernel.msgmax", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_wmem")
]


@pytest.mark.parametrize(
    ("wanted", "made", "text"),
    [
        ("privileged", pod(privileged=True), ""),
        ("baseline", pod(privileged=False), ""),
        ("baseline:0", pod({"containers": [{"name": "a", "image": "i"} | PROBE]}), ""),
        (
            "baseline:34",
            pod({"containers": [{"name": "z", "image": "i"} | PROBE, {"name": "b", "image": "i"} | PROBE]}),
            'probe or lifecycle host (containers "b", "z" use probe or lifecycle hosts "a", "b")',
        ),
        (
            "baseline:26",
            pod({"securityContext": {"sysctls": SYSCTLS}}),
            f"forbidden sysctls ({', '.join(sysctl['name'] for sysctl in SYSCTLS)})",
        ),
        (
            "baseline:27",
            pod({"securityContext": {"sysctls": SYSCTLS}}),
            "forbidden sysctls (kernel.msgmax, net.ipv4.tcp_fin_timeout, net.ipv4.tcp_wmem)",
        ),
        (
            "baseline:31",
            pod({"securityContext": {"sysctls": SYSCTLS}}),
            "forbidden sysctls (kernel.msgmax, net.ipv4.tcp_wmem)",
        ),
        ("baseline:32", pod({"securityContext": {"sysctls": SYSCTLS}}), "forbidden sysctls (kernel.msgmax)"),
        (
            "baseline:18",
            pod(annotations=SECCOMP),
            'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")',
        ),
        (
            "restricted:18",
            pod(annotations=SECCOMP, **GOOD),
            'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")',
        ),
        ("baseline:19", pod(annotations=SECCOMP), ""),
        ("baseline:18", pod(seccompProfile={"type": "Unconfined"}), ""),
        (
            "baseline",
            pod({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, seccompProfile={"type": "Unconfined"}),
            'seccompProfile (pod and container "a" must not set securityContext.seccompProfile.type to "Unconfined")',
        ),
        ("restricted:7", pod(runAsNonRoot=True), ""),
        (
            "restricted:8",
            pod(runAsNonRoot=True),
            'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false)',
        ),
        ("restricted:22", pod(**GOOD | {"runAsUser": 0}), ""),
        (
            "restricted:23",
            pod({"securityContext": {"runAsUser": 0}}, **GOOD | {"runAsUser": 0}),
            'runAsUser=0 (pod and container "a" must not set runAsUser=0)',
        ),
        (
            "restricted:34",
            pod({"hostUsers": False}, **GOOD | {"runAsUser": 0}),
            'runAsUser=0 (container "a" must not set runAsUser=0)',
        ),
        ("restricted:35", pod({"hostUsers": False}, **GOOD | {"runAsUser": 0, "runAsNonRoot": False}), ""),
        (
            "baseline:34",
            pod({"hostUsers": False}, procMount="Unmasked"),
            'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
        ),
        ("baseline:35", pod({"hostUsers": False}, procMount="Unmasked"), ""),
        (
            "baseline:35",
            pod({"hostUsers": True}, procMount="Unmasked"),
            'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
        ),
        (
            "restricted:30",
            pod(**GOOD | {"procMount": "Unmasked"}),
            'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
        ),
        (
            "baseline:30",
            pod(seLinuxOptions={"type": "container_engine_t", "user": "u"}),
            (
                'seLinuxOptions (container "a" set forbidden '
                'securityContext.seLinuxOptions: type "container_engine_t"; '
                "user may not be set)"
            ),
        ),
        ("baseline:31", pod(seLinuxOptions={"type": "container_engine_t"}), ""),
        (
            "baseline",
            pod(seLinuxOptions={"level": "s0"}, capabilities={"add": ["CAP_CHOWN"]}),
            'non-default capabilities (container "a" must not include "CAP_CHOWN" in securityContext.capabilities.add)',
        ),
        (
            "restricted:21",
            pod(**GOOD | {"capabilities": {"add": ["NET_RAW"]}}),
            'non-default capabilities (container "a" must not include "NET_RAW" in securityContext.capabilities.add)',
        ),
        (
            "restricted:22",
            pod(**GOOD | {"capabilities": {"add": ["NET_RAW"]}}),
            (
                'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]; '
                'container "a" must not include "NET_RAW" in securityContext.capabilities.add)'
            ),
        ),
        (
            "restricted",
            pod({"os": {"name": "windows"}}),
            'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)',
        ),
        (
            "restricted",
            pod({"securityContext": {"runAsNonRoot": False}}, **GOOD),
            "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
        ),
        (
            "baseline",
            pod(windowsOptions={"hostProcess": True}),
            'hostProcess (container "a" must not set securityContext.windowsOptions.hostProcess=true)',
        ),
        (
            "baseline",
            pod(
                {
                    "containers": [
                        {
                            "name": "a",
                            "image": "i",
                            "ports": [{"containerPort": 1, "hostPort": port} for port in (80, 10000, 9)],
                        }
                    ]
                }
            ),
            'hostPort (container "a" uses hostPorts 10000, 80, 9)',
        ),
        (
            "restricted",
            pod({"volumes": [{"name": "g", "gitRepo": {}}, {"name": "i", "image": {}}]}, **GOOD),
            'restricted volume types (volume "g" uses restricted volume type "gitRepo")',
        ),
        (
            "baseline",
            pod(
                annotations={"container.apparmor.security.beta.kubernetes.io/x": 'a"b'},
                appArmorProfile={"type": "Localhost", "localhostProfile": "l"},
            ),
            (
                "forbidden AppArmor profile (annotation must not set AppArmor profile type to "
                '"container.apparmor.security.beta.kubernetes.io/x="a\\"b"")'
            ),
        ),
    ],
)
def test_what_a_level_forbids(wanted: str, made: Pod, text: str) -> None:
    assert found(wanted, made) == text


def test_ephemeral_containers_are_containers() -> None:
    made = pod({"ephemeralContainers": [{"name": "e", "image": "i", "securityContext": {"privileged": True}}]})
    assert found("baseline", made) == 'privileged (container "e" must not set securityContext.privileged=true)'


def test_a_version_beyond_the_newest_counts_as_the_newest() -> None:
    made = pod({"hostUsers": False}, procMount="Unmasked")
    assert (found("baseline:36", made), found("baseline", made), NEWEST) == ("", "", 35)


@pytest.mark.parametrize(
    ("labels", "policy", "errors"),
    [
        ({}, "privileged:latest privileged:latest privileged:latest", 0),
        ({"pod-security.kubernetes.io": "baseline"}, "privileged:latest privileged:latest privileged:latest", 0),
        ({"enforce": "baseline", "enforce-version": "v1.0"}, "baseline:v1.0 privileged:latest baseline:v1.0", 0),
        ({"enforce": "baseline", "warn-version": "v1.9"}, "baseline:latest privileged:latest baseline:v1.9", 0),
        ({"enforce": "restricted", "warn": "privileged"}, "restricted:latest privileged:latest privileged:latest", 0),
        ({"enforce": "Baseline"}, "restricted:latest privileged:latest privileged:latest", 1),
        ({"audit": "x", "warn": ""}, "privileged:latest privileged:latest privileged:latest", 2),
        ({"enforce-version": "v1.01"}, "privileged:latest privileged:latest privileged:latest", 1),
        ({"enforce-version": "1.1"}, "privileged:latest privileged:latest privileged:latest", 1),
        ({"enforce-version": f"v1.{2**63}"}, "privileged:latest privileged:latest privileged:latest", 1),
        ({"enforce-version": "v1.\u0661"}, "privileged:latest privileged:latest privileged:latest", 1),
    ],
)
def test_labels(labels: dict[str, str], policy: str, errors: int) -> None:
    whole = {name if name == LABEL[:-1] else LABEL + name: text for name, text in labels.items()}
    read, wrong = policy_of(whole)
    assert f"{read.enforce} {read.audit} {read.warn}" == policy
    assert len(wrong) == errors


def judged(policy: Policy, made: Pod, *, enforce: bool) -> PolicyVerdict:
    found = {version: violations(version, made.metadata, made.spec) for version in levels_of(policy, enforce=enforce)}
    return evaluate(policy, found, enforce=enforce)


def test_a_refusal_is_not_warned_of_and_is_audited() -> None:
    policy, _ = policy_of({LABEL + "enforce": "baseline", LABEL + "audit": "baseline", LABEL + "warn": "restricted"})
    verdict = judged(policy, pod(privileged=True), enforce=True)
    assert verdict.refused.startswith('violates PodSecurity "baseline:latest": privileged (')
    assert verdict.warning == ""
    audited = f"would {verdict.refused.replace('violates', 'violate')}"
    assert verdict.annotations == {ENFORCED: "baseline:latest", AUDITED: audited}
    template = judged(policy, pod(privileged=True), enforce=False)
    assert (template.refused, ENFORCED in template.annotations) == ("", False)
    assert template.warning.startswith('would violate PodSecurity "restricted:latest": privileged (')


def test_messages_are_bounded_whatever_the_pod() -> None:
    def container(number: int) -> dict[str, Any]:
        capabilities = {"add": ["X" * 5000 + str(number)]}
        return {"name": f"c{number:062}", "image": "i", "securityContext": {"capabilities": capabilities}}

    text = found("restricted", pod({"containers": [container(number) for number in range(5000)]}))
    assert len(text) < 100_000
    assert "and 4900 more" in text


@pytest.mark.parametrize(
    ("change", "significant"),
    [
        ({"metadata": {"labels": {"a": "b"}}}, False),
        ({"spec": {"activeDeadlineSeconds": 1}}, False),
        ({"metadata": {"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "x"}}}, True),
        ({"metadata": {"annotations": {"container.seccomp.security.alpha.kubernetes.io/a": "x"}}}, True),
        ({"spec": {"containers": [{"name": "a", "image": "other"}]}}, True),
        ({"spec": {"initContainers": [{"name": "b", "image": "i"}]}}, True),
        ({"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}, True),
    ],
)
def test_which_updates_are_looked_at(change: dict[str, Any], significant: bool) -> None:
    container = {"name": "a", "image": "i"}
    old = convert({"spec": {"containers": [container]}}, Pod)
    spec = {"containers": [container]} | change.get("spec", {})
    new = convert({"metadata": change.get("metadata", {}), "spec": spec}, Pod)
    assert is_significant(new, old) is significant


def test_when_the_pods_of_a_namespace_are_looked_at() -> None:
    def enforcing(level: str, minor: int | None = None) -> Policy:
        return convert({"enforce": {"level": level, "minor": minor}}, Policy)

    assert has_to_look(enforcing("baseline"), PRIVILEGED)
    assert has_to_look(enforcing("baseline", 30), enforcing("restricted"))
    assert not has_to_look(enforcing("baseline", 30), enforcing("restricted", 30))
    assert not has_to_look(enforcing("privileged", 30), enforcing("restricted"))


def test_one_pod_of_each_controller_comes_first() -> None:
    pods = [("a1", "a"), ("a2", "a"), ("alone", ""), ("b1", "b"), ("other", ""), ("b2", "b")]
    assert in_turn(pods) == ["a1", "alone", "b1", "other", "a2", "b2"]


def test_what_is_told_of_existing_pods() -> None:
    tally, wanted = Tally(), LevelVersion("baseline")
    bad = violations(wanted, pod().metadata, pod({"hostPID": True}, privileged=True).spec)
    for name in ("z", "y", "x"):
        tally.add(name, bad)
    tally.add("fine", ())
    assert tally.warnings("n", wanted, total=9) == [
        "new PodSecurity enforce level only checked against the first 4 of 9 existing pods",
        'existing pods in namespace "n" violate the new PodSecurity enforce level "baseline:latest"',
        "x (and 2 other pods): host namespaces, privileged",
    ]
