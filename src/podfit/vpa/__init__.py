"""The Vertical Pod Autoscaler's processes, beside any API server: what they decide is in `decide.autoscaling`."""
