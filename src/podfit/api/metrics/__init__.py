"""metrics.k8s.io, which the API server passes on to a metrics-server."""
