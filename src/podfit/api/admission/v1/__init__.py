"""admission.k8s.io/v1."""
