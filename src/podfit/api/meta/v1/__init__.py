"""meta.k8s.io/v1: metadata of objects, and the options of requests."""
