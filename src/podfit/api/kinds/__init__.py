"""The declarations of kinds: a file for each API group, with the columns of `kubectl get` that only it needs."""
