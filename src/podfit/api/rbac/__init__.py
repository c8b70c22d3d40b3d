"""The API group rbac.authorization.k8s.io."""
