"""Names of a cluster (Kubernetes DNS-Based Service Discovery, version 1.1): objects in, records out; a question in, an
answer out.

records.py    the records of a Service
zone.py       all names of a cluster, and what a question about them is answered
resolvers.py  what the host's resolvers answer: what of it is believed, and for how long
own.py        the Service `kube-dns`, and whose it is
"""
