"""A node as a plan sees it: the node machine and the making of room, on what the API tells."""
