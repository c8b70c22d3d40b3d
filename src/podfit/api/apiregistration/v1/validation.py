"""APIServices: a name that says what is served, priorities, and a service with what is needed to trust it."""

from podfit.api.apiregistration.v1.types import APIService, APIServiceSpec, ServiceReference
from podfit.api.meta.base import Object
from podfit.api.meta.validation import names
from podfit.api.meta.validation.rules import Rules
from podfit.core.fields import FieldError, invalid, required

_HIGHEST_GROUP, _HIGHEST_VERSION = 20_000, 1_000


def validate_registration(registered: APIService) -> list[FieldError]:
    spec, name = registered.spec, registered.metadata.name
    errors = []
    if name != (wanted := f"{spec.version}.{spec.group}"):
        errors.append(invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{wanted}"'))
    if not spec.group and spec.version != "v1":
        errors.append(required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
    elif spec.group:
        errors += [invalid("spec.group", spec.group, text) for text in names.dns_subdomain(spec.group)]
    errors += [invalid("spec.version", spec.version, text) for text in names.dns_label(spec.version)]
    return errors + _priorities(spec) + _service(spec)


def _priorities(spec: APIServiceSpec) -> list[FieldError]:
    given = (
        ("groupPriorityMinimum", spec.group_priority_minimum, _HIGHEST_GROUP),
        ("versionPriority", spec.version_priority, _HIGHEST_VERSION),
    )
    return [
        invalid(f"spec.{name}", value, f"must be positive and less than {highest}")
        for name, value, highest in given
        if not 0 < value <= highest
    ]


def _service(spec: APIServiceSpec) -> list[FieldError]:
    bundle, skips = spec.ca_bundle, "spec.insecureSkipTLSVerify"
    if spec.service is None:
        errors = []
        if bundle:
            text = "local APIServices may not have a caBundle"
            errors.append(invalid("spec.caBundle", f"{len(bundle)} bytes", text))
        if spec.insecure_skip_tls_verify:
            text = "local APIServices may not have insecureSkipTLSVerify"
            errors.append(invalid(skips, value=True, detail=text))
        return errors
    errors = _reference(spec.service)
    if spec.insecure_skip_tls_verify and bundle:
        errors.append(invalid(skips, value=True, detail="may not be true if caBundle is non-empty"))
    return errors


def _reference(service: ServiceReference) -> list[FieldError]:
    errors = [] if service.namespace else [required("spec.service.namespace")]
    errors += [] if service.name else [required("spec.service.name")]
    port = service.port or 0
    wrong = names.port_number(port)
    return errors + [invalid("spec.service.port", port, f"port is not valid: {text}") for text in wrong]


RULES: dict[type[Object], Rules] = {
    APIService: Rules(names.path_segment, validate_registration, metadata="both", finalizers="any")
}
