"""A module for each process (`podfit apiserver`, `controllers`, `scheduler`, `kubelet`), and `up`, their sum."""
