"""Pod Security Standards: which pods a namespace's labels allow, as Kubernetes 1.36 decides it.

`policy` reads the labels, `baseline` and `restricted` are the checks, `registry` says which of them belong to a level
and a version, `evaluate` makes the answer to one write, `existing` what is said of the pods that are there when the
labels change.
"""
