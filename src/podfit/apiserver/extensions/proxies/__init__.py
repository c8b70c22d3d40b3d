"""Requests that go through the API server to pods: `pods/proxy` and `services/proxy`."""
