"""The Container Runtime Interface, v1, over gRPC."""

import os

# gRPC reads it when it is loaded. It tells on the terminal what it prepares for forks, and nothing is forked here.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
