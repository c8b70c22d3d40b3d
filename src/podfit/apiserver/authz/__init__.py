"""Authorization: RBAC, the node authorizer, and the default roles."""
