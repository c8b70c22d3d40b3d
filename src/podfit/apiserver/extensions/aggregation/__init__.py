"""Group versions that other components serve, behind this server's address and under its authorization."""
