"""Addresses of services: the families they are of, the policy about them, and that they stay once they were given."""

from podfit.api.core.services import Service, ServiceSpec
from podfit.api.service_defaults import EXTERNAL_NAME
from podfit.api.validation.addresses import address, family
from podfit.core.fields import FieldError, duplicate, invalid, required, unsupported

HEADLESS = "None"
FAMILIES = ("IPv4", "IPv6")
ONCE = "may not change once set"
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")


def is_headless(spec: ServiceSpec) -> bool:
    return spec.cluster_ip == HEADLESS or spec.cluster_ips[:1] == (HEADLESS,)


def validate_addresses(service: Service) -> list[FieldError]:
    """Addresses, families and the policy about them, which a service of every type but ExternalName has."""
    spec = service.spec
    if spec.type == EXTERNAL_NAME:
        return []
    ips, path = spec.cluster_ips, "spec.clusterIPs"
    errors = _agreement(spec) + _families(spec.ip_families)
    if spec.ip_family_policy is not None and spec.ip_family_policy not in _POLICIES:
        errors.append(unsupported("spec.ipFamilyPolicy", spec.ip_family_policy, _POLICIES))
    misplaced = HEADLESS in ips[:1] and len(ips) > 1
    if misplaced:
        errors.append(invalid(path, list(ips), "'None' must be the first and only value"))
    bad = [each for index, text in enumerate(ips) if index or text != HEADLESS
           for each in address(text, f"{path}[{index}]")]  # fmt: skip
    errors += bad
    if len(ips) > 2:
        errors.append(invalid(path, list(ips), "may only hold up to 2 values"))
    if misplaced or bad:
        return errors
    if len(ips) > 1 and len({family(text) for text in ips}) < len(ips):
        errors.append(invalid(path, list(ips), "may specify no more than one IP for each IP family"))
    return errors or _matching(spec)


def _agreement(spec: ServiceSpec) -> list[FieldError]:
    path, ips = "spec.clusterIPs", list(spec.cluster_ips)
    if spec.cluster_ip and not ips:
        return [required(path)]
    if ips and not spec.cluster_ip:
        return [invalid(path, ips, "must be empty when `clusterIP` is not specified")]
    return [invalid(path, ips, "first value must match `clusterIP`")] if ips and ips[0] != spec.cluster_ip else []


def _families(families: tuple[str, ...]) -> list[FieldError]:
    errors = []
    for index, each in enumerate(families):
        path = f"spec.ipFamilies[{index}]"
        if each not in FAMILIES:
            errors.append(unsupported(path, each, FAMILIES))
        if each in families[:index]:
            errors.append(duplicate(path, each))
    return errors


def _matching(spec: ServiceSpec) -> list[FieldError]:
    if is_headless(spec):
        return []
    return [
        invalid(f"spec.clusterIPs[{index}]", text,
                f"expected an {wanted} value as indicated by `ipFamilies[{index}]`")
        for index, (text, wanted) in enumerate(zip(spec.cluster_ips, spec.ip_families, strict=False))
        if family(text) != wanted
    ]  # fmt: skip


def addresses_kept(new: ServiceSpec, old: ServiceSpec) -> list[FieldError]:
    if EXTERNAL_NAME in (new.type, old.type) or (is_headless(new) and is_headless(old)):
        return []
    after, before = new.cluster_ips, old.cluster_ips
    path = "spec.clusterIPs"
    if before and not after:
        return [invalid(f"{path}[0]", list(after), "primary clusterIP can not be unset")]
    changed = [index for index, text in enumerate(before[: len(after)]) if text != after[index]]
    errors = [invalid(f"{path}[{index}]", list(after), ONCE) for index in changed]
    moved = [index for index, each in enumerate(old.ip_families[: len(new.ip_families)])
             if each != new.ip_families[index]]  # fmt: skip
    return errors + [invalid(f"spec.ipFamilies[{index}]", list(new.ip_families), ONCE) for index in moved]
