"""The network of a node's pods: addresses by CNI plugins of the distribution, a table of rules of its own, switches.

PodNetwork       the interface: `assign` a range of addresses, `problem` while there is none, `joined` for each new pod
RoutedNetwork    a real node's own; `decide.node.pod_network` says what the plugins, nft and the kernel are told
OthersNetwork    an external runtime's, or none where every pod is on the host's network

machine.py       what several clusters of one machine share: ranges that are claimed, switches that are on
leftovers.py     addresses and namespaces whose pods are gone, however they went
"""
