"""ConfigMaps, Secrets and ServiceAccounts: types and validation."""
