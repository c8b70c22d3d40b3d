"""resolv.conf of a pod, as upstream's kubelet makes it from dnsPolicy and dnsConfig.

    ClusterFirst               the cluster's servers; on the node's network as Default
    ClusterFirstWithHostNet    the cluster's servers, also there
    Default                    what the node has
    None                       nothing but what dnsConfig says
    dnsConfig                  its servers and searches after those, its options over those

With the cluster's servers come NAMESPACE.svc.DOMAIN, svc.DOMAIN and DOMAIN before the node's searches, and `ndots:5`.
What C libraries do not read is left out, and an event of the pod says so.
"""

from collections.abc import Iterable

import msgspec

from podfit.api.core.v1.pods.types import Pod, PodDNSConfig

MOST_SERVERS, MOST_SEARCHES, LONGEST_SEARCH_LINE, LONGEST_SEARCH = 3, 32, 2048, 253
DOMAIN = "cluster.local"
FORMING, MISSING = "DNSConfigForming", "MissingClusterDNS"
NDOTS = "ndots:5"
DISABLED = "127.0.0.1"


class Resolver(msgspec.Struct, frozen=True):
    """What a resolv.conf says; an option is `name` or `name:value`."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


NO_LOOKUPS = Resolver((DISABLED,), (".",))
"""Of a node that is told `--resolv-conf ""`."""


class ClusterNames(msgspec.Struct, frozen=True):
    """Addresses of the cluster's name servers, and its domain; empty where it has none."""

    servers: tuple[str, ...] = ()
    domain: str = DOMAIN


class Warned(msgspec.Struct, frozen=True):
    """An event about the pod, and with `node` also about its node, in other words."""

    reason: str
    message: str
    node: str = ""


class Formed(msgspec.Struct, frozen=True):
    """`resolver` is None where the pod gets the node's own file as it is."""

    resolver: Resolver | None
    warnings: tuple[Warned, ...] = ()


def pod_resolver(pod: Pod, node: Resolver, names: ClusterNames, *, shared: bool) -> Formed:
    """`node` is what the node's own file says. `shared`: every pod is on the node's network, where no cluster's names
    are to be had.
    """
    policy, config, warnings = pod.spec.dns_policy, pod.spec.dns_config, list[Warned]()
    wants_cluster = policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not pod.spec.host_network)
    base, own = node, True
    if policy == "None":
        base, own = Resolver(), False
    elif wants_cluster and names.servers:
        base, own = Resolver(names.servers, _searches(pod, names.domain, node.searches), (NDOTS,)), False
    elif wants_cluster and not shared:
        warnings.append(_missing(pod))
    wanted = base
    if config is not None:
        wanted = Resolver(
            _distinct((*base.servers, *config.nameservers)),
            _distinct((*base.searches, *config.searches)),
            _options(base.options, config),
        )
    fitting, said = _within_limits(wanted)
    return Formed(None if own and fitting == node else fitting, (*warnings, *said))


def _missing(pod: Pod) -> Warned:
    text = (
        'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. '
        'Falling back to "Default" policy.'
    )
    meta = pod.metadata
    return Warned(MISSING, f'pod: "{meta.name}_{meta.namespace}({meta.uid})". {text}', text)


def _searches(pod: Pod, domain: str, node: Iterable[str]) -> tuple[str, ...]:
    if not domain:
        return tuple(node)
    return _distinct((f"{pod.metadata.namespace}.svc.{domain}", f"svc.{domain}", domain, *node))


def _within_limits(wanted: Resolver) -> tuple[Resolver, list[Warned]]:
    said = list[Warned]()
    servers = wanted.servers[:MOST_SERVERS]
    if servers != wanted.servers:
        text = "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
        said.append(Warned(FORMING, text + " ".join(servers)))
    searches = list(wanted.searches[:MOST_SEARCHES])
    searches = [search for search in searches if len(search) <= LONGEST_SEARCH]
    while len(" ".join(searches)) > LONGEST_SEARCH_LINE:
        searches.pop()
    if tuple(searches) != wanted.searches:
        text = "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "
        said.append(Warned(FORMING, text + " ".join(searches)))
    return Resolver(servers, tuple(searches), wanted.options), said


def parse(text: str) -> Resolver:
    """Reads a resolv.conf. The last `search` line counts, as to the C library."""
    servers, searches, options = list[str](), tuple[str, ...](), list[str]()
    for line in text.splitlines():
        match line.split():
            case ["nameserver", address, *_]:
                servers.append(address)
            case ["search", *names]:
                searches = tuple(name if name == "." else name.removesuffix(".") for name in names)
            case ["options", *given]:
                options += given
    return Resolver(tuple(servers), searches, _distinct(options))


def _options(base: Iterable[str], config: PodDNSConfig) -> tuple[str, ...]:
    """The pod's word over the node's."""
    merged = {option.partition(":")[0]: option for option in base}
    for option in config.options:
        merged[option.name] = f"{option.name}:{option.value}" if option.value else option.name
    return tuple(merged.values())


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
