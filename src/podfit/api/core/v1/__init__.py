"""The core group, version 1: a folder for each kind, or for kinds that belong together.

pods               pods, their containers and templates; `validation` by part of the pod
services           services and endpoints
persistentvolumes  volumes and claims
nodes, namespaces, events, replication
config             ConfigMaps, Secrets, ServiceAccounts
limits             LimitRange, ResourceQuota
"""
