"""The legacy mode, for clients of Kubernetes 1.27 to 1.32. The CLI names `options`, which load nothing of `mode`."""
