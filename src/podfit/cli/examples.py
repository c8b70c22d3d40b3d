"""Examples and exit codes of every verb, for the end of its `--help`. `tests/cli/test_examples.py` runs them."""

from typing import NamedTuple


class Example(NamedTuple):
    what: str
    command: str


EXAMPLES: dict[str, tuple[Example, ...]] = {
    "up": (
        Example("A cluster in the background; as root with a real node.", "podfit up --detach"),
        Example("Three simulated nodes, no root.", "podfit up --detach --node simulated --nodes 3"),
        Example("A second cluster.", "podfit up --detach --port 0 --data ~/two --kubeconfig ~/two/kubeconfig"),
    ),
    "apiserver": (
        Example("The API alone, on a file.", "podfit apiserver --data ~/api --port 0"),
        Example("On an etcd that others use as well.", "podfit apiserver --etcd-servers https://127.0.0.1:2379"),
    ),
    "controllers": (Example("Beside podfit apiserver --data ~/api.", "podfit controllers --data ~/api"),),
    "scheduler": (Example("Beside podfit apiserver --data ~/api.", "podfit scheduler --data ~/api"),),
    "dns": (
        Example(
            "Beside podfit apiserver --data ~/api, on a port of one's own.", "podfit dns --data ~/api --dns-port 5353"
        ),
        Example(
            "Beside any cluster, for its pods.",
            "podfit dns --kubeconfig kc --dns-address 10.0.0.7 --dns-allow 10.244.0.0/16",
        ),
    ),
    "proxy": (Example("Beside podfit apiserver and kubelet --data ~/api.", "podfit proxy --data ~/api"),),
    "kubelet": (
        Example(
            "Join this machine to a cluster; as root.", "podfit kubelet --bootstrap-kubeconfig bootstrap.kubeconfig"
        ),
        Example("Again, with sizes from a file.", "podfit kubelet --config kubelet.yaml"),
    ),
    "down": (
        Example("Stop the cluster and its containers.", "podfit down"),
        Example("The one of another directory.", "podfit down --data ~/two"),
    ),
    "backup": (Example("All objects, while the cluster runs.", "podfit backup monday.backup"),),
    "restore": (
        Example("Into a new directory.", "podfit restore monday.backup --data ~/again"),
        Example("Over the store that is there, which is kept aside.", "podfit restore monday.backup --replace"),
    ),
    "doctor": (
        Example("What this machine can run, and what mends what it lacks.", "podfit doctor"),
        Example("For a script.", "podfit doctor -o json"),
    ),
    "status": (
        Example("What runs on the usual directory.", "podfit status"),
        Example("For a script.", "podfit status -o json"),
    ),
    "plan": (
        Example("More CPU for a pod with one container.", "podfit plan pod/web --cpu 700m"),
        Example(
            "Request and limit; the kind and the name apart, as in kubectl.",
            "podfit plan pod web --cpu 500m:1 --memory 256Mi",
        ),
        Example("Every pod of a workload, a fifth more.", "podfit plan deployment/shop --cpu +20%"),
        Example("The sizes of a manifest.", "podfit plan pod/web -f pods.yaml"),
        Example("The largest size that it can have now.", "podfit plan pod/web --fit"),
        Example("Several at once, with sums.", "podfit plan deployment -A --memory 96Mi"),
    ),
    "resize": (
        Example("Until the node has done it.", "podfit resize pod/web --cpu 700m --wait"),
        Example("Let the API server judge, and store nothing.", "podfit resize pod/web --cpu 700m --dry-run"),
        Example("All pods with a label.", "podfit resize -l app=web --cpu +10%"),
        Example("Back to the size before the first resize.", "podfit resize pod/web --undo"),
        Example("One pod first.", "podfit resize deployment/shop --cpu 300m --canary 1 --watch 2s"),
    ),
    "why": (
        Example("What waits in the namespace.", "podfit why"),
        Example("What waits in the cluster.", "podfit why -A"),
        Example("Sizes of a pod, and what keeps a resize from being done.", "podfit why pod/web"),
        Example("Who holds a node.", "podfit why node/simulated-1"),
        Example("Could a node go, and what keeps it?", "podfit why node/simulated-1 --removable"),
    ),
    "top": (
        Example("The pods of the namespace.", "podfit top"),
        Example("Those with a label, largest share of their limit first.", "podfit top -l app=web --sort memory%"),
    ),
    "allocation": (
        Example("How full the nodes are.", "podfit allocation"),
        Example("Who requests what, and uses how much of it.", "podfit allocation namespace"),
        Example("The workloads of the cluster.", "podfit allocation workload -A"),
    ),
    "history": (
        Example("What a pod used in the last week, with its resizes and OOMs.", "podfit history pod/web"),
        Example("Every pod of a workload, also those that are gone.", "podfit history deployment/shop --since 24h"),
        Example("Each sample, for a spreadsheet.", "podfit history pod/web -o csv"),
    ),
    "history query": (
        Example("What there is to ask about.", "podfit history query 'describe usage'"),
        Example("Who ran out of memory, and when.", "podfit history query 'select time, pod, container from ooms'"),
        Example(
            "The most that each pod used.", "podfit history query 'select pod, max(cpu_peak) from usage group by 1'"
        ),
    ),
    "recommend": (
        Example("All of a namespace.", "podfit recommend -n shop"),
        Example("One workload, from five minutes of usage.", "podfit recommend deployment/web --for 5m"),
        Example(
            "Everything, from Prometheus.",
            "podfit recommend -A --storage prometheus --prometheus-address http://prom:9090",
        ),
        Example("For a spreadsheet, with what it saves.", "podfit recommend -A --prices prices.yaml -o csv"),
    ),
    "export": (
        Example("Sizes as a patch for kustomize.", "podfit export deployment/shop"),
        Example("All Deployments of the cluster.", "podfit export deployment -A"),
        Example("Does what runs differ from a manifest?", "podfit export pod/web --drift -f pods.yaml"),
    ),
    "version": (Example("For a script.", "podfit version -o json"),),
    "completion": (Example("For this shell.", "source <(podfit completion bash)"),),
    "demo": (Example("About 20 seconds; as root with real containers.", "podfit demo"),),
    "image load": (Example("An archive of `docker save`.", "podfit image load web.tar"),),
    "metrics-server": (
        Example("Beside the cluster of a kubeconfig, found by its API server.", "podfit metrics-server --register"),
        Example("Kubelets with certificates of their own.", "podfit metrics-server --kubelet-insecure-tls"),
    ),
    "cluster-autoscaler": (
        Example(
            "Node groups by KWOK's contract, from templates.",
            "podfit cluster-autoscaler --node-groups examples/node-groups.yaml",
        ),
        Example(
            "Node groups of another program.",
            "podfit cluster-autoscaler --cloud-provider externalgrpc --cloud-config c.yaml",
        ),
        Example("What it does next in a group, and why.", "podfit why node-group/small"),
    ),
    "vpa recommender": (
        Example("Beside the cluster of a kubeconfig.", "podfit vpa recommender --kubeconfig ~/.kube/config"),
    ),
    "vpa updater": (
        Example("Beside the cluster of a kubeconfig.", "podfit vpa updater --kubeconfig ~/.kube/config"),
        Example("Evict where a VPA says Recreate.", "podfit vpa updater --upstream-compatible"),
    ),
    "vpa admission-controller": (
        Example(
            "Reached at an address of this machine.",
            "podfit vpa admission-controller --register-by-url --webhook-address 10.0.0.7",
        ),
        Example("For the service vpa-webhook of kube-system.", "podfit vpa admission-controller"),
    ),
    "token create": (
        Example("For a machine that joins today.", "podfit token create --out bootstrap.kubeconfig"),
        Example("For an hour.", "podfit token create --ttl 1 --description 'rack 4'"),
    ),
    "image list": (
        Example("What the node can run.", "podfit image list"),
        Example("With IDs in full.", "podfit image list -o wide"),
    ),
}

USAGE, MACHINE, API = "2 wrong usage", "3 no usable kubeconfig", "4 the API answered with an error, or not at all"
LACKS = "3 this machine lacks something"
_PROCESS = ("0 stopped", "1 a part of it failed", USAGE, LACKS)
_API = (USAGE, MACHINE, API)
EXIT_CODES: dict[str, tuple[str, ...]] = {
    "up": ("0 stopped; with `--detach`: the cluster runs", "1 a part of it failed", USAGE, LACKS),
    **dict.fromkeys(("apiserver", "controllers", "scheduler", "kubelet", "proxy", "dns"), _PROCESS),
    "cluster-autoscaler": _PROCESS,
    "metrics-server": (*_PROCESS, "4 the API answered with an error, or not at all"),
    **dict.fromkeys(("vpa recommender", "vpa updater", "vpa admission-controller"), _PROCESS),
    "backup": ("0 written", USAGE, "3 the store cannot be read, or the file not written"),
    "restore": ("0 restored", USAGE, "3 not restored, nothing was changed"),
    "image load": ("0 loaded", USAGE, "3 no cluster with a node runs, or an archive cannot be read"),
    "image list": ("0 shown", USAGE, "3 no cluster with a node runs"),
    "demo": ("0 all checks passed", "1 one failed", USAGE, LACKS),
    "down": ("0 nothing runs any more", "1 something was left behind", USAGE, "3 it cannot be stopped"),
    "completion": ("0 printed", USAGE),
    "version": ("0 shown", USAGE),
    "doctor": ("0 API server and real node can run here", USAGE, "3 this machine lacks something"),
    "status": (
        "0 it runs and is ready, with all its nodes",
        "1 it does not run, or is not ready",
        USAGE,
        "3 the directory cannot be read",
    ),
    "plan": ("0 every pod can be resized now", "1 not every one, or no pod runs", *_API),
    "resize": (
        "0 every pod has been resized",
        "1 not every one, one still waits, a canary went back, or no pod runs",
        *_API,
    ),
    "why": ("0 nothing waits or fails, or the node could go", "1 something does, or the node could not", *_API),
    "top": ("0 shown", USAGE, MACHINE, f"{API}, or there are no metrics"),
    "allocation": ("0 shown", *_API),
    "history": ("0 shown", "1 nothing was recorded of it", USAGE, "3 there is no history, or it cannot be read"),
    "history query": (
        "0 shown",
        "1 refused, or more than its time or memory",
        USAGE,
        "3 there is no history, or it cannot be read",
    ),
    "token create": ("0 made", *_API),
    "recommend": ("0 shown", "1 nothing is known of any container", *_API),
    "export": ("0 exported, or no drift", "1 drift, or no pod runs", *_API),
}


def epilogue(verb: str) -> str:
    """The end of a verb's help."""
    lines = ["Examples:"]
    for example in EXAMPLES[verb]:
        lines += [f"  # {example.what}", f"  {example.command}", ""]
    return "\n".join((*lines, "Exit codes:", *(f"  {code}" for code in EXIT_CODES[verb]), ""))
