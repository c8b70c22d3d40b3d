"""What this node has promised: desired pods come in, allocated pods go out.

A resize is decided here and nowhere else. Decisions are taken one pass at a time, written durably, and only then
visible, so whoever reads `allocated` sees a promise that survives a crash (spec 5.1 to 5.5).

    manager = AllocationManager(allocated=Checkpoint, actuated=Checkpoint, node=…, clock=…, emit=…, sync=…, end=…,
                                metrics=…, managers=…)
    admissions = await manager.add(pods)      new pods, and all of them after a start -> Admitted | Rejected for each,
                                              Unsaved | Preempting: to be added again
    await manager.update(pods)                changed specs: evaluated at once
    await manager.remove(uids)                pods whose containers are gone and whose object is gone
    await manager.reconcile(uid, status)      after a status was generated: did it end, or shrink? wakes those that wait
    await manager.sources_ready()             every pod of this node is known now; no resize is decided before
    manager.allocated(pod) -> Pod             the only pod that a worker may see
    await manager.settled()                   what is read next belongs to one decision
    manager.begin_sync(pod, running) -> Pod   the same, and keeps PodResizeInProgress true to what is left to do
    manager.report(pod, error)                the outcome of an actuation, "" when all went well
    manager.conditions(uid)                   Pending, then InProgress, as they stand
    manager.close()

`sync(uid, trigger)` is called when a pod should be synced now, or, if it is to be added again, when it is worth trying;
it must not block. `end(uid)` has a pod end for a critical one. `emit(pod, type, reason, message)` records an event
about a pod.
"""
