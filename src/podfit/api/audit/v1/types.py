"""audit.k8s.io/v1: the policy that says what is recorded of which requests."""

from podfit.api.meta.base import Struct, always


class GroupResources(Struct):
    group: str = ""
    resource_names: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()


class AuditRule(Struct):
    level: str = always(default="")
    namespaces: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()
    omit_stages: tuple[str, ...] = ()
    resources: tuple[GroupResources, ...] = ()
    user_groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


class AuditPolicy(Struct):
    kind: str = always(default="Policy")
    api_version: str = always(default="audit.k8s.io/v1")
    omit_stages: tuple[str, ...] = ()
    rules: tuple[AuditRule, ...] = ()
