"""The API group admission.k8s.io."""
