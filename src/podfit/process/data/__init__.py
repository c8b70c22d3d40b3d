"""A data directory: its files, its state and version, backups, and the process that holds its lock."""
