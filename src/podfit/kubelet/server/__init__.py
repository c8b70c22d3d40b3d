"""The kubelet's HTTPS server: health, pods, logs, metrics, exec; `access` asks the API server who may."""
