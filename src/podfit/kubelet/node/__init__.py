"""The Node object: what it is and has, its Lease, and the pressures it is under."""
