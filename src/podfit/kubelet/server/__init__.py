"""What the node answers over HTTPS: health, pods, logs, metrics; `access` asks the API server who may."""
