"""CPUs and memory that belong to one container alone: the kubelet's static CPU and memory manager policies.

    decide.managers.cpu, decide.managers.memory    who gets what; pure
    ResourceManagers                               what was given, durably: cpu_manager_state, memory_manager_state
    SharedPool                                     keeps every running container on the CPUs that it may use
    machine                                        the CPUs and NUMA nodes of this machine

Allocation asks the pure part and has the outcome kept; the actuator reads what a container is created with.
"""
