"""Addresses of services: the families they are of, the policy about them, and that they stay once they were given."""

from podfit.api.core.v1.services.defaults import EXTERNAL_NAME
from podfit.api.core.v1.services.types import Service, ServiceSpec
from podfit.api.meta.validation.addresses import address, family
from podfit.core.fields import FieldError, duplicate, invalid, required, unsupported

HEADLESS = "None"
FAMILIES = ("IPv4", "IPv6")
ONCE = "may not change once set"
_SINGLE = "SingleStack"
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
    bad = [
        error
        for index, text in enumerate(ips)
        if index or text != HEADLESS
        for error in address(text, f"{path}[{index}]")
    ]
    errors += bad
    if len(ips) > 2:
        errors.append(invalid(path, list(ips), "may only hold up to 2 values"))
    if misplaced or bad:
        return errors
    if len(ips) > 1 and len({family(text) for text in ips}) < len(ips):
        errors.append(invalid(path, list(ips), "may specify no more than one IP for each IP family"))
    return errors + _matching(spec)


def _agreement(spec: ServiceSpec) -> list[FieldError]:
    path, ips = "spec.clusterIPs", list(spec.cluster_ips)
    if spec.cluster_ip and not ips:
        return [required(path)]
    if ips and not spec.cluster_ip:
        return [invalid(path, ips, "must be empty when `clusterIP` is not specified")]
    return [invalid(path, ips, "first value must match `clusterIP`")] if ips and ips[0] != spec.cluster_ip else []


def _families(families: tuple[str, ...]) -> list[FieldError]:
    errors = []
    for index, name in enumerate(families):
        path = f"spec.ipFamilies[{index}]"
        if name not in FAMILIES:
            errors.append(unsupported(path, name, FAMILIES))
        if name in families[:index]:
            errors.append(duplicate(path, name))
    return errors


def _matching(spec: ServiceSpec) -> list[FieldError]:
    if is_headless(spec):
        return []
    return [
        invalid(f"spec.clusterIPs[{index}]", text, f"expected an {wanted} value as indicated by `ipFamilies[{index}]`")
        for index, (text, wanted) in enumerate(zip(spec.cluster_ips, spec.ip_families, strict=False))
        if family(text) != wanted
    ]


def addresses_kept(new: ServiceSpec, old: ServiceSpec) -> list[FieldError]:
    if EXTERNAL_NAME in (new.type, old.type):
        return []
    if is_headless(new) and is_headless(old):
        return []
    errors = _ips_kept(new, old)
    return errors if is_headless(new) or is_headless(old) else errors + _families_kept(new, old)


def _ips_kept(new: ServiceSpec, old: ServiceSpec) -> list[FieldError]:
    """The first address stays; a second one may come, and go with the policy of one family."""
    before, after, path = old.cluster_ips, new.cluster_ips, "spec.clusterIPs"
    shown = list(after) or None
    if len(before) == len(after):
        changed = [index for index, text in enumerate(before) if text != after[index]]
        return [invalid(f"{path}[{index}]", shown, ONCE) for index in changed]
    errors = []
    if not after:
        errors.append(invalid(f"{path}[0]", shown, "primary clusterIP can not be unset"))
    if before and after and before[0] != after[0]:
        errors.append(invalid(f"{path}[0]", shown, ONCE))
    if len(before) > len(after) == 1 and new.ip_family_policy != _SINGLE:
        text = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(invalid("spec.ipFamilyPolicy", new.ip_family_policy, text))
    return errors


def _families_kept(new: ServiceSpec, old: ServiceSpec) -> list[FieldError]:
    before, after, path = old.ip_families, new.ip_families, "spec.ipFamilies[0]"
    if len(before) == len(after):
        changed = [index for index, name in enumerate(before) if name != after[index]]
        return [invalid(path, list(after), ONCE) for _ in changed]
    errors = []
    if len(before) > len(after) and not new.cluster_ips:
        errors.append(invalid(path, list(after) or None, "primary ipFamily can not be unset"))
    if before and after and before[0] != after[0]:
        errors.append(invalid(path, list(new.cluster_ips) or None, ONCE))
    if len(before) > len(after) == 1 and new.ip_family_policy != _SINGLE:
        text = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        errors.append(invalid("spec.ipFamilyPolicy", new.ip_family_policy, text))
    return errors
