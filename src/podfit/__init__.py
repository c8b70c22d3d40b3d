"""podfit fits running pods to their load without restarting them."""

__version__ = "0.1.0"
