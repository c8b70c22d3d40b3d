"""audit.k8s.io/v1."""
