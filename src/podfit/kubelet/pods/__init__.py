"""Pods on their way from the API to the runtime.

manager   hears changes; `worker` is the task of one pod, `sync` one turn of it, `plan` what a turn does next
starter   begins a container; `terminator` ends a pod; `reporter` tells the status
"""
