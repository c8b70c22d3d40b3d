"""The kinds of the group autoscaling.k8s.io, custom resources to an API server, as types for their readers."""
