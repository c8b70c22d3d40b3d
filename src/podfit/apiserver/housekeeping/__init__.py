"""Background tasks of an API server: bootstrap objects, its own service, leases, and compaction."""
