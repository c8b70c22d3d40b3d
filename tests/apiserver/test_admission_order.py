"""The order of the admission plugins is the one that the documentation gives."""

import re
from pathlib import Path

from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.types import Pod
from podfit.api.rbac.v1.types import ClusterRole
from podfit.apiserver.admission.limits import LimitRanger
from podfit.apiserver.admission.pod_resize import NodeChecks
from podfit.apiserver.admission.quota import QuotaAdmission
from podfit.apiserver.admission_chain import BUILT_IN, LAST
from podfit.apiserver.extensions.webhooks.admission import MutatingWebhooks, ValidatingWebhooks
from podfit.decide.resize.checks import NODE_CHECKS, RESIZE_CHECKS, VALIDATING_WEBHOOKS

DOCS = Path(__file__).parents[2] / "docs" / "apiserver.md"
OURS = {  # where a class is not called as upstream's plugin
    "CertificateAdmission": "CertificateApproval",
    "ServiceAccountAdmission": "ServiceAccount",
    "PriorityAdmission": "Priority",
    "DefaultTolerations": "DefaultTolerationSeconds",
    "StorageInUseProtection": "StorageObjectInUseProtection",
    "RuntimeClassAdmission": "RuntimeClass",
    "ClaimResize": "PersistentVolumeClaimResize",
}


def test_plugins_run_in_the_order_of_the_documentation() -> None:
    section = DOCS.read_text().partition("## Admission\n")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `(\w+)`", section, re.MULTILINE)
    ours = [OURS.get(plugin.__name__, plugin.__name__) for plugin in BUILT_IN]
    assert told == [*ours[:-1], *(check.name for check in NODE_CHECKS)]
    assert BUILT_IN[-1] is NodeChecks


def test_the_checks_of_a_resize_are_those_of_the_documentation_in_their_order() -> None:
    section = DOCS.read_text().partition("### The checks of a resize\n")[2].partition("\n##")[0]
    told = re.findall(r"^\| \d+ \| `?([\w ]+?)`? \| (.+) \|$", section, re.MULTILINE)
    assert told == [(check.name, check.text) for check in RESIZE_CHECKS]


def test_the_chain_refuses_in_the_order_of_the_list() -> None:
    chain, names = (*BUILT_IN, *LAST), [check.name for check in RESIZE_CHECKS]
    plugins = {
        LimitRanger: "LimitRanger",
        NodeChecks: NODE_CHECKS[0].name,
        ValidatingWebhooks: VALIDATING_WEBHOOKS,
        QuotaAdmission: "ResourceQuota",
    }
    assert [plugins[plugin] for plugin in chain if plugin in plugins] == sorted(plugins.values(), key=names.index)
    assert chain.index(MutatingWebhooks) < chain.index(ValidatingWebhooks)


def test_a_plugin_is_asked_only_about_the_writes_that_it_names() -> None:
    asked = {
        (operation, kind, subresource): {
            plugin.__name__ for plugin in BUILT_IN if plugin.concern.covers(operation, kind, subresource)
        }
        for operation, kind, subresource in (
            ("CREATE", Pod, "binding"),
            ("UPDATE", Pod, "status"),
            ("UPDATE", Pod, "resize"),
            ("UPDATE", ClusterRole, ""),
            ("DELETE", Namespace, ""),
        )
    }
    assert asked == {
        ("CREATE", Pod, "binding"): {"NamespaceLifecycle", "NodeRestriction", "PodTopologyLabels"},
        ("UPDATE", Pod, "status"): {"NodeRestriction"},
        ("UPDATE", Pod, "resize"): {"LimitRanger", "NodeRestriction", "PodSecurity", "NodeChecks"},
        ("UPDATE", ClusterRole, ""): {"NodeRestriction", "Escalation"},
        ("DELETE", Namespace, ""): {"NamespaceLifecycle", "NodeRestriction"},
    }
