"""The Container Runtime Interface, v1, over gRPC."""
