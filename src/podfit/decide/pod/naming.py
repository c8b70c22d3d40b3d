"""/etc/hosts, hostname and resolv.conf of pods.

/etc/hosts     loopback, the pod's address with its names, then hostAliases; on the node's network the node's own lines
resolv.conf    dnsPolicy None: dnsConfig alone; any other: the node's, with what dnsConfig adds

There is no cluster DNS, so ClusterFirst and ClusterFirstWithHostNet are as Default.
"""

from collections.abc import Iterable

import msgspec

from podfit.api.core.v1.pods.types import Pod, PodDNSConfig

MOST_SERVERS = 3  # a C library reads no more
MOST_SEARCHES = 32
LONGEST_HOSTNAME = 63
DOMAIN = "cluster.local"


class Resolver(msgspec.Struct, frozen=True):
    """What a resolv.conf says; an option is `name` or `name:value`."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


LOOPBACK_HOSTS = (
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
    "fe00::0\tip6-localnet",
    "fe00::0\tip6-mcastprefix",
    "fe00::1\tip6-allnodes",
    "fe00::2\tip6-allrouters",
)


def hosts_file(pod: Pod, node_hosts: str, address: str, *, shared: bool) -> str:
    """`node_hosts` is the node's own /etc/hosts, for a pod that has its network `shared` with the node."""
    if shared:
        lines = ["# Kubernetes-managed hosts file (host network).", node_hosts.rstrip("\n")]
    else:
        lines = ["# Kubernetes-managed hosts file.", *LOOPBACK_HOSTS]
    if not pod.spec.host_network and address:
        lines.append("\t".join((address, *names_of(pod))))
    if pod.spec.host_aliases:
        lines += ["", "# Entries added by HostAliases."]
        lines += ["\t".join((alias.ip, *alias.hostnames)) for alias in pod.spec.host_aliases]
    return "\n".join(lines) + "\n"


def names_of(pod: Pod) -> tuple[str, ...]:
    """The pod's names, the longest first: its hostname (or its own name), in its subdomain if it has one."""
    spec = pod.spec
    short = spec.hostname_override or spec.hostname or pod.metadata.name[:LONGEST_HOSTNAME].rstrip("-.")
    if spec.hostname_override or not spec.subdomain:
        return (short,)
    return f"{short}.{spec.subdomain}.{pod.metadata.namespace}.svc.{DOMAIN}", short


def hostname_of(pod: Pod) -> str:
    """What the pod is told to be called; empty where it is called as its node."""
    if pod.spec.host_network:
        return ""
    names = names_of(pod)
    return names[0] if pod.spec.set_hostname_as_fqdn else names[-1]


def resolver(pod: Pod, node_file: str) -> Resolver | None:
    """None where the pod asks for nothing but the node's own file, which is `node_file`."""
    config = pod.spec.dns_config
    if config is None:
        return Resolver() if pod.spec.dns_policy == "None" else None
    base = Resolver() if pod.spec.dns_policy == "None" else parse(node_file)
    return Resolver(
        _first([*base.servers, *config.nameservers], MOST_SERVERS),
        _first([*base.searches, *config.searches], MOST_SEARCHES),
        _options(base.options, config),
    )


def full_name(name: str, namespace: str, uid: str) -> str:
    """How events, waiting states and logs name a pod."""
    return f"{name}_{namespace}({uid})"


def parse(text: str) -> Resolver:
    """Of `search` the last line counts, as to the C library."""
    servers, searches, options = list[str](), tuple[str, ...](), list[str]()
    for line in text.splitlines():
        match line.split():
            case ["nameserver", address, *_]:
                servers.append(address)
            case ["search", *names]:
                searches = tuple(names)
            case ["options", *given]:
                options += given
    return Resolver(tuple(servers), searches, tuple(options))


def _options(base: Iterable[str], config: PodDNSConfig) -> tuple[str, ...]:
    """The pod's word over the node's."""
    merged = {option.partition(":")[0]: option for option in base}
    for option in config.options:
        merged[option.name] = f"{option.name}:{option.value}" if option.value else option.name
    return tuple(merged.values())


def _first(texts: Iterable[str], most: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))[:most]
