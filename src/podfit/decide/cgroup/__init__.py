"""The arithmetic of cgroups: what a container and a pod ask the kernel for, shares, weights, Memory QoS."""
