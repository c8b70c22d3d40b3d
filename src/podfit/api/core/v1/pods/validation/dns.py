"""Validation of a pod's DNS policy and configuration."""

from podfit.api.core.v1.pods.types import PodDNSConfig
from podfit.api.meta.validation import names
from podfit.api.meta.validation.addresses import address
from podfit.core.fields import FieldError, invalid, required

_NAMESERVERS, _SEARCHES, _LETTERS = 3, 32, 2048


def validate_dns(config: PodDNSConfig | None, policy: str, path: str) -> list[FieldError]:
    if policy == "None" and config is None:
        return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
    if config is None:
        return []
    where = f"{path}.nameservers"
    if policy == "None" and not config.nameservers:
        return [required(where, "must provide at least one DNS nameserver when `dnsPolicy` is None")]
    errors = []
    if len(config.nameservers) > _NAMESERVERS:
        text = f"must not have more than {_NAMESERVERS} nameservers"
        errors.append(invalid(where, list(config.nameservers), text))
    for index, nameserver in enumerate(config.nameservers):
        errors += address(nameserver, f"{where}[{index}]")
    errors += _searches(config.searches, f"{path}.searches")
    for index, option in enumerate(config.options):
        errors += [] if option.name else [required(f"{path}.options[{index}]", "must not be empty")]
    return errors


def _searches(searches: tuple[str, ...], path: str) -> list[FieldError]:
    errors = []
    if len(searches) > _SEARCHES:
        errors.append(invalid(path, list(searches), f"must not have more than {_SEARCHES} search paths"))
    if len(" ".join(searches).encode()) > _LETTERS:
        text = f"must not have more than {_LETTERS} characters (including spaces) in the search list"
        errors.append(invalid(path, list(searches), text))
    for index, search in enumerate(searches):
        domain = search.removesuffix(".")
        problems = [] if search == "." else names.dns_subdomain_with_underscores(domain)
        errors += [invalid(f"{path}[{index}]", domain, text) for text in problems]
    return errors
