"""Pods on their way from the API to the runtime.

manager   hears changes; `worker` is the task of one pod, which feeds its machine (`decide.lifecycle`)
world     carries out what the machine asks for; `starter` begins a container, `killer` stops some
"""
