"""The API group storage.k8s.io."""
