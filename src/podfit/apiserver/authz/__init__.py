"""May they: the question that is asked, RBAC, the rights of a kubelet, and the roles that a cluster starts with."""
