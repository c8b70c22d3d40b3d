"""The audit policy: the first rule that matches a request gives the level of its event."""

import msgspec

from podfit.api.audit.v1.types import AuditPolicy, AuditRule, GroupResources

NONE, METADATA, REQUEST, REQUEST_RESPONSE = "None", "Metadata", "Request", "RequestResponse"
LEVELS = (NONE, METADATA, REQUEST, REQUEST_RESPONSE)
RECEIVED, STARTED, COMPLETE, PANIC = "RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"
STAGES = (RECEIVED, STARTED, COMPLETE, PANIC)
EVERYTHING = AuditPolicy(omit_stages=(RECEIVED,), rules=(AuditRule(level=METADATA),))


class AuditAttributes(msgspec.Struct, frozen=True):
    """What the rules look at; `path` is set for what is not a resource."""

    user: str
    groups: tuple[str, ...]
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Recorded(msgspec.Struct, frozen=True):
    level: str
    omitted: frozenset[str]

    def at(self, stage: str) -> bool:
        return self.level != NONE and stage not in self.omitted


def recorded(policy: AuditPolicy, asked: AuditAttributes) -> Recorded:
    """Nothing, when no rule fits."""
    for rule in policy.rules:
        if _fits(rule, asked):
            return Recorded(rule.level, frozenset((*policy.omit_stages, *rule.omit_stages)))
    return Recorded(NONE, frozenset())


def problems(policy: AuditPolicy) -> list[str]:
    """What is wrong with a policy, for whoever wrote it."""
    found = [] if policy.rules else ["rules: Required value: a policy without rules records nothing"]
    for index, rule in enumerate(policy.rules):
        if rule.level not in LEVELS:
            found.append(f"rules[{index}].level: {rule.level!r} is none of {', '.join(LEVELS)}")
        if rule.non_resource_urls and (rule.resources or rule.namespaces):
            found.append(f"rules[{index}]: a rule is about resources or about nonResourceURLs, not both")
    stages = [*policy.omit_stages, *(stage for rule in policy.rules for stage in rule.omit_stages)]
    return found + [f"omitStages: {stage!r} is none of {', '.join(STAGES)}" for stage in stages if stage not in STAGES]


def _fits(rule: AuditRule, asked: AuditAttributes) -> bool:
    if rule.users and asked.user not in rule.users:
        return False
    if rule.user_groups and not set(rule.user_groups) & set(asked.groups):
        return False
    if rule.verbs and asked.verb not in rule.verbs and "*" not in rule.verbs:
        return False
    if asked.path:
        if rule.resources or rule.namespaces:
            return False
        return not rule.non_resource_urls or any(_path_fits(url, asked.path) for url in rule.non_resource_urls)
    if rule.non_resource_urls or (rule.namespaces and asked.namespace not in rule.namespaces):
        return False
    return not rule.resources or any(_resource_fits(resource, asked) for resource in rule.resources)


def _path_fits(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else pattern == path


def _resource_fits(given: GroupResources, asked: AuditAttributes) -> bool:
    if given.group != asked.group:
        return False
    if not given.resources:
        return True
    if given.resource_names and asked.name not in given.resource_names:
        return False
    return any(_named(resource, asked.resource, asked.subresource) for resource in given.resources)


def _named(pattern: str, resource: str, subresource: str) -> bool:
    """`*` is everything, `pods` pods without their subresources, `pods/*` and `*/status` what they say."""
    if pattern == "*":
        return True
    wanted, _, sub = pattern.partition("/")
    return wanted in ("*", resource) and (sub == subresource or (sub == "*" and bool(subresource)))
