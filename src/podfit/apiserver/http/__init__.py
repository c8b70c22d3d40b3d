"""What surrounds every request: flow control, metrics, presentation, and the pages that name no resource.

flow_control  who waits for a seat, by `fairness`
pages         health, version, discovery
openapi       schemas of what is served
"""
