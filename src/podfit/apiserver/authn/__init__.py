"""Authentication: certificates, service account tokens, bootstrap tokens, and impersonation."""
