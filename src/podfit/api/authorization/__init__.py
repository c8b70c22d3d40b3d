"""The API group authorization.k8s.io."""
