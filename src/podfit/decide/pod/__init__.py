"""A pod by itself.

requests             what a pod counts for; `qos`: its class
resize_state         what its resize stands for: deferred, infeasible, in progress, failing, not judged yet
allocated            what is set aside for its containers and for itself
probing              when a container is probed, and what the outcome makes of it
environment          variables of containers; `service_variables`: those of services
ephemeral_containers containers that `kubectl debug` adds
runtime_class        what a RuntimeClass adds; `unsupported_fields`: what nodes do not do, told as warnings
naming, attempts     names of containers at the runtime; their number
"""
