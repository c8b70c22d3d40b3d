"""Making what was allocated real: what `decide.node.actuation` asks for, carried out on runtime and cgroups.

Every call can be repeated after a crash; the record of what was actuated is written after each step that worked.
A pod worker's sync goes, in this order:

    actuator = Actuator(runtime=…, cgroups=…, machine=Machine(…), record=Checkpoint, metrics=…, clock=…,
                        managers=…, guard=Guard(cgroups, clock, folder))
    await actuator.ensure_pod_cgroup(pod, active)    creates it, refreshing the QoS tiers; True when it was missing
    async with Actuation(actuator, pod, live, …) as world:
        await drive(allocation, world, world.due())  stop, measure, change; nothing to do is the usual case: two reads
    await actuator.before_create(pod, name)          just before create_container
    actuator.container(pod, name)                    resources of ContainerConfig
    actuator.sandbox(pod)                            (resources, overhead) of SandboxConfig
    actuator.forget(uid), actuator.retain(uids)      once nothing of the pod is left
    actuator.cgroups.values(pod)                     what its cgroup holds, for the status

`pod` is the allocated pod everywhere; `live: LivePod` says which containers run now.
"""
