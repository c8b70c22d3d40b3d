"""The API group audit.k8s.io."""
