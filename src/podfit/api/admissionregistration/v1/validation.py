"""Webhook configurations: what is wrong with whom they name, when, and how."""

import re
from collections.abc import Iterator

from podfit.api.admissionregistration.v1.types import (
    MatchCondition,
    MutatingWebhook,
    MutatingWebhookConfiguration,
    RuleWithOperations,
    ServiceReference,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from podfit.api.meta.base import Object
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import validate_selector
from podfit.api.meta.validation.rules import Rules
from podfit.api.structural.conditions import condition_problem
from podfit.core.fields import FieldError, duplicate, invalid, required, too_many, unsupported

REVIEW_VERSIONS = ("v1", "v1beta1")
MOST_CONDITIONS = 64
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_URL = re.compile(
    r"((?P<scheme>[A-Za-z][A-Za-z0-9+.-]*+):)?"
    r"(//((?P<user>[^@/?#\s]*+)@)?(?P<host>[^@/?#:\s\[\]]*+|\[[0-9A-Fa-f:.]++\])(:[0-9]{0,5})?)?"
    r"(?P<path>[^?#\s]*+)(\?(?P<query>[^#\s]*+))?(#(?P<fragment>\S*+))?"
)
_FORM = "desired format: https://host[/path]"
_CHOICES = (
    ("failure_policy", "failurePolicy", ("Fail", "Ignore")),
    ("match_policy", "matchPolicy", ("Equivalent", "Exact")),
)


def validate_configuration(
    configuration: ValidatingWebhookConfiguration | MutatingWebhookConfiguration,
) -> list[FieldError]:
    errors: list[FieldError] = []
    known: set[str] = set()
    for index, webhook in enumerate(configuration.webhooks):
        path = f"webhooks[{index}]"
        errors += [*_webhook(webhook, path), *_review_versions(webhook.admission_review_versions, path)]
        if webhook.name and webhook.name in known:
            errors.append(duplicate(f"{path}.name", webhook.name))
        known.add(webhook.name)
    return errors


def _webhook(webhook: ValidatingWebhook, path: str) -> Iterator[FieldError]:
    yield from _name(webhook.name, f"{path}.name")
    for index, rule in enumerate(webhook.rules):
        yield from _rule(rule, f"{path}.rules[{index}]")
    for attribute, name, allowed in _CHOICES:
        value = getattr(webhook, attribute)
        if value is not None and value not in allowed:
            yield unsupported(f"{path}.{name}", value, allowed)
    if webhook.side_effects is None:
        yield required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    elif webhook.side_effects not in ("None", "NoneOnDryRun"):
        yield unsupported(f"{path}.sideEffects", webhook.side_effects, ("None", "NoneOnDryRun"))
    seconds = webhook.timeout_seconds
    if seconds is not None and not 1 <= seconds <= 30:
        yield invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
    yield from validate_selector(webhook.namespace_selector, f"{path}.namespaceSelector")
    yield from validate_selector(webhook.object_selector, f"{path}.objectSelector")
    if isinstance(webhook, MutatingWebhook) and webhook.reinvocation_policy not in (None, "IfNeeded", "Never"):
        yield unsupported(f"{path}.reinvocationPolicy", webhook.reinvocation_policy, ("IfNeeded", "Never"))
    yield from _client(webhook.client_config, f"{path}.clientConfig")
    yield from _conditions(webhook.match_conditions, f"{path}.matchConditions")


def _conditions(conditions: tuple[MatchCondition, ...], path: str) -> Iterator[FieldError]:
    if len(conditions) > MOST_CONDITIONS:
        yield too_many(path, len(conditions), MOST_CONDITIONS)
        return
    known: set[str] = set()
    for index, condition in enumerate(conditions):
        here = f"{path}[{index}]"
        if not condition.expression.strip():
            yield required(f"{here}.expression")
        elif why := condition_problem(condition.expression):
            yield invalid(f"{here}.expression", condition.expression, why)
        if not condition.name:
            yield required(f"{here}.name")
            continue
        yield from (invalid(f"{here}.name", condition.name, text) for text in names.qualified(condition.name))
        if condition.name in known:
            yield duplicate(f"{here}.name", condition.name)
        known.add(condition.name)


def _name(name: str, path: str) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    elif wrong := names.dns_subdomain(name):
        yield invalid(path, name, ",".join(wrong))
    elif name.count(".") < 2:
        yield invalid(path, name, "should be a domain with at least three segments separated by dots")


def _rule(rule: RuleWithOperations, path: str) -> Iterator[FieldError]:
    yield from _several(rule.operations, f"{path}.operations", "operations")
    for index, operation in enumerate(rule.operations):
        if operation not in _OPERATIONS:
            yield unsupported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    yield from _several(rule.api_groups, f"{path}.apiGroups", "API groups")
    yield from _several(rule.api_versions, f"{path}.apiVersions", "API versions")
    for index, version in enumerate(rule.api_versions):
        if not version:
            yield required(f"{path}.apiVersions[{index}]")
    yield from _resources(rule.resources, f"{path}.resources")
    if rule.scope not in (None, "*", "Cluster", "Namespaced"):
        yield unsupported(f"{path}.scope", rule.scope, ("*", "Cluster", "Namespaced"))


def _several(items: tuple[str, ...], path: str, what: str) -> Iterator[FieldError]:
    if not items:
        yield required(path)
    if "*" in items and len(items) > 1:
        yield invalid(path, list(items), f"if '*' is present, must not specify other {what}")


def _resources(resources: tuple[str, ...], path: str) -> Iterator[FieldError]:
    """A wildcard must not name again what it covers already. Of resources without a subresource the last one decides
    whether there are any, as upstream."""
    if not resources:
        yield required(path)
    whole, everywhere = set(), set()  # resources with all subresources, subresources of all resources
    plain = False
    for index, pattern in enumerate(resources):
        resource, slash, sub = pattern.partition("/")
        if not pattern:
            yield required(f"{path}[{index}]")
        elif not slash:
            plain = pattern != "*"
        else:
            if resource in whole:
                yield invalid(f"{path}[{index}]", pattern, f"if '{resource}/*' is present, must not specify {pattern}")
            if sub in everywhere:
                yield invalid(f"{path}[{index}]", pattern, f"if '*/{sub}' is present, must not specify {pattern}")
            whole |= {resource} if sub == "*" else set()
            everywhere |= {sub} if resource == "*" else set()
    if "*/*" in resources and len(resources) > 1:
        yield invalid(path, list(resources), "if '*/*' is present, must not specify other resources")
    if "*" in resources and plain:
        text = "if '*' is present, must not specify other resources without subresources"
        yield invalid(path, list(resources), text)


def _client(config: WebhookClientConfig, path: str) -> Iterator[FieldError]:
    if (config.url is None) == (config.service is None):
        yield required(path, "exactly one of url or service is required")
    elif config.url is not None:
        yield from _url(config.url, f"{path}.url")
    elif config.service is not None:
        yield from _service(config.service, f"{path}.service")


def _url(url: str, path: str) -> Iterator[FieldError]:
    parts = _URL.fullmatch(url)
    if parts is None:
        yield required(path, f"url must be a valid URL: {url}; {_FORM}")
        return
    scheme, user, host, query, fragment = parts.group("scheme", "user", "host", "query", "fragment")
    if scheme != "https":
        yield invalid(path, scheme or "", f"'https' is the only allowed URL scheme; {_FORM}")
    if not host:
        yield invalid(path, host or "", f"host must be specified; {_FORM}")
    if user is not None:
        yield invalid(path, user, "user information is not permitted in the URL")
    if fragment:
        yield invalid(path, fragment, "fragments are not permitted in the URL")
    if query:
        yield invalid(path, query, "query parameters are not permitted in the URL")


def _service(service: ServiceReference, path: str) -> Iterator[FieldError]:
    for name, value in (("name", service.name), ("namespace", service.namespace)):
        if not value:
            yield required(f"{path}.{name}")
    if service.port is not None and not 1 <= service.port <= 65535:
        yield invalid(f"{path}.port", service.port, "port is not valid: must be between 1 and 65535, inclusive")
    if service.path not in (None, "", "/"):
        yield from (invalid(f"{path}.path", service.path, text) for text in _path(service.path))


def _path(text: str) -> Iterator[str]:
    if text == "//":
        yield "segment[0] may not be empty"
        return
    if not text.startswith("/"):
        yield "must start with a '/'"
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            yield f"segment[{index}] may not be empty"
        else:
            yield from (f"segment[{index}]: {wrong}" for wrong in names.dns_subdomain(step))


def _review_versions(versions: tuple[str, ...], path: str) -> Iterator[FieldError]:
    where, wanted = f"{path}.admissionReviewVersions", ", ".join(REVIEW_VERSIONS)
    if not versions:
        yield required(where, f"must specify one of {wanted}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(f"{where}[{index}]", version, "duplicate version")
        else:
            yield from (invalid(f"{where}[{index}]", version, text) for text in names.dns_1035_label(version))
    if not any(version in REVIEW_VERSIONS for version in versions):
        yield invalid(where, list(versions), f"must include at least one of {wanted}")


RULES: dict[type[Object], Rules] = {
    MutatingWebhookConfiguration: Rules(create=validate_configuration, metadata="new", finalizers="any"),
    ValidatingWebhookConfiguration: Rules(create=validate_configuration, metadata="new", finalizers="any"),
}
