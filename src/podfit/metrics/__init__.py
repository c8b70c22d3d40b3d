"""What pods and nodes use, from their kubelets' /metrics/resource, served as metrics.k8s.io.

points    the two latest readings of each container and node, and the rates between them; no I/O
samples   a kubelet's answer, as points
scraper   asks every kubelet once in each interval
kubelets  where a kubelet listens, and the HTTPS way to it
serving   the API: lists and single objects, tables, discovery, health
objects   what registers it: service, APIService, roles
"""
