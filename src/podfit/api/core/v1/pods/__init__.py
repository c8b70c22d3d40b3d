"""The pod: types by part (containers, probes, security, volumes, affinity), defaults, columns, validation.

types          Pod, PodSpec, PodStatus
aggregate      what all containers of a pod need at once
templates      PodTemplateSpec
"""
