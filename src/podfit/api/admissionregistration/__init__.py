"""The API group admissionregistration.k8s.io."""
