"""API aggregation: group versions that other servers serve, behind this server's address and authorization."""
