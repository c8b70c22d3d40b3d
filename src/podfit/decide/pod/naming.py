"""/etc/hosts, hostname and full names of pods. (Their resolv.conf: resolver.py.)

/etc/hosts     loopback, the pod's address with its names, then hostAliases; on the node's network the node's own lines
"""

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.pod.resolver import DOMAIN

LONGEST_HOSTNAME = 63
LOOPBACK_HOSTS = (
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
    "fe00::0\tip6-localnet",
    "fe00::0\tip6-mcastprefix",
    "fe00::1\tip6-allnodes",
    "fe00::2\tip6-allrouters",
)


def hosts_file(pod: Pod, node_hosts: str, address: str, *, shared: bool, domain: str = DOMAIN) -> str:
    """`node_hosts` is the node's own /etc/hosts, for a pod that has its network `shared` with the node."""
    if shared:
        lines = ["# Kubernetes-managed hosts file (host network).", node_hosts.rstrip("\n")]
    else:
        lines = ["# Kubernetes-managed hosts file.", *LOOPBACK_HOSTS]
    if not pod.spec.host_network and address:
        lines.append("\t".join((address, *names_of(pod, domain))))
    if pod.spec.host_aliases:
        lines += ["", "# Entries added by HostAliases."]
        lines += ["\t".join((alias.ip, *alias.hostnames)) for alias in pod.spec.host_aliases]
    return "\n".join(lines) + "\n"


def names_of(pod: Pod, domain: str = DOMAIN) -> tuple[str, ...]:
    """The pod's names, the longest first: its hostname (or its own name), in its subdomain if it has one."""
    spec = pod.spec
    short = spec.hostname_override or spec.hostname or pod.metadata.name[:LONGEST_HOSTNAME].rstrip("-.")
    if spec.hostname_override or not spec.subdomain:
        return (short,)
    return f"{short}.{spec.subdomain}.{pod.metadata.namespace}.svc.{domain}", short


def hostname_of(pod: Pod, domain: str = DOMAIN) -> str:
    """What the pod is told to be called; empty where it is called as its node."""
    if pod.spec.host_network:
        return ""
    names = names_of(pod, domain)
    return names[0] if pod.spec.set_hostname_as_fqdn else names[-1]


def full_name(name: str, namespace: str, uid: str) -> str:
    """How events, waiting states and logs name a pod."""
    return f"{name}_{namespace}({uid})"
