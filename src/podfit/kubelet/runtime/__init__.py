"""Container runtimes behind one protocol: CRI (containerd, CRI-O) and a simulated one."""
