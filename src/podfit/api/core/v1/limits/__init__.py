"""LimitRange and ResourceQuota: types and validation; what they allow is decided in `decide.limits`."""
