"""The API group networking.k8s.io."""
