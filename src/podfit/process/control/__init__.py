"""Processes of the control plane: the API server, controllers, scheduler and metrics server, and their files."""
