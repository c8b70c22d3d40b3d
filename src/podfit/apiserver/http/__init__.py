"""The HTTP layer around requests: flow control, metrics, health, and paths that name no resource.

flow_control  who waits for a seat, by `priority_levels`
health        /healthz, /livez, /readyz; `write_probe` says whether the store takes writes
discovery     which groups, versions and resources are served
openapi       schemas of what is served
"""
