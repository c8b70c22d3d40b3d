"""The names of the cluster, for pods: a server of DNS beside the proxy.

server.py        UDP and TCP: who may ask, what is answered
forwarder.py     what is not the cluster's name: the host's resolvers, and a bounded cache in front of them
names.py         informers of Services and their endpoints: the zone
own_service.py   the Service `kube-dns` and where it leads
wire.py          questions and answers as packets; library.py: what others have sent, by dnspython
metrics.py       counts, under CoreDNS' names
"""
