"""What a namespace allows: LimitRange defaults and bounds, ResourceQuota scopes, usage and credit."""
