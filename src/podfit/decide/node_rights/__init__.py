"""What a kubelet's credential may do: upstream's NodeRestriction admission and node authorizer, without any I/O.

requests    which requests of a node are allowed, refused, or allowed for objects related to the node
references  what a pod or a volume refers to; from these a relation follows
pods        writes of pods: mirror pods, status, deletion, eviction
nodes       writes of the Node object; labels
objects     writes of what else a kubelet has: lease, CSINode, claim status, certificate request, token
"""
