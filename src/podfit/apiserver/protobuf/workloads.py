"""The layouts of workloads that kubectl makes itself: `create deployment`, `job`, `cronjob`, `autoscale`, `drain`.

Pods have more fields than those commands fill in. What is not listed of a pod is refused, not skipped: a template that
has lost a volume on the way would be stored as if its author had wanted none.
"""

from collections.abc import Mapping

from podfit.apiserver.protobuf.kinds import DELETE_OPTIONS, META, SELECTOR
from podfit.apiserver.protobuf.wire import (
    FLAG,
    INT_OR_STRING,
    NUMBER,
    QUANTITIES,
    TEXT,
    TEXTS,
    Layout,
    complete,
    many,
    mapping,
    message,
    only,
    pointer,
)

_PORT = complete({
    1: ("name", TEXT), 2: ("hostPort", NUMBER), 3: ("containerPort", NUMBER), 4: ("protocol", TEXT),
    5: ("hostIP", TEXT),
})  # fmt: skip
_CONTAINER = complete({
    1: ("name", TEXT), 2: ("image", TEXT), 3: ("command", TEXTS), 4: ("args", TEXTS), 5: ("workingDir", TEXT),
    6: ("ports", many(_PORT)), 7: ("env", many(complete({1: ("name", TEXT), 2: ("value", TEXT)}))),
    8: ("resources", complete({1: ("limits", QUANTITIES), 2: ("requests", QUANTITIES)})),
    13: ("terminationMessagePath", TEXT), 14: ("imagePullPolicy", TEXT), 16: ("stdin", FLAG), 17: ("stdinOnce", FLAG),
    18: ("tty", FLAG), 20: ("terminationMessagePolicy", TEXT),
})  # fmt: skip
_TOLERATION = complete({
    1: ("key", TEXT), 2: ("operator", TEXT), 3: ("value", TEXT), 4: ("effect", TEXT),
    5: ("tolerationSeconds", pointer(NUMBER)),
})  # fmt: skip
_POD = complete({
    2: ("containers", many(_CONTAINER)), 3: ("restartPolicy", TEXT),
    4: ("terminationGracePeriodSeconds", pointer(NUMBER)), 5: ("activeDeadlineSeconds", pointer(NUMBER)),
    6: ("dnsPolicy", TEXT), 7: ("nodeSelector", mapping(TEXT)), 8: ("serviceAccountName", TEXT),
    9: ("serviceAccount", TEXT), 10: ("nodeName", TEXT), 11: ("hostNetwork", FLAG), 12: ("hostPID", FLAG),
    13: ("hostIPC", FLAG), 14: ("securityContext", complete({})),
    15: ("imagePullSecrets", many(message({1: ("name", TEXT)}))), 16: ("hostname", TEXT), 17: ("subdomain", TEXT),
    19: ("schedulerName", TEXT), 20: ("initContainers", many(_CONTAINER)),
    21: ("automountServiceAccountToken", pointer(FLAG)), 22: ("tolerations", many(_TOLERATION)),
    24: ("priorityClassName", TEXT), 25: ("priority", pointer(NUMBER)), 27: ("shareProcessNamespace", pointer(FLAG)),
    29: ("runtimeClassName", pointer(TEXT)), 30: ("enableServiceLinks", pointer(FLAG)),
    31: ("preemptionPolicy", pointer(TEXT)), 35: ("setHostnameAsFQDN", pointer(FLAG)),
})  # fmt: skip
_TEMPLATE = message({1: ("metadata", META), 2: ("spec", _POD)})
_ROLLING = message({1: ("maxUnavailable", INT_OR_STRING), 2: ("maxSurge", INT_OR_STRING)})
_DEPLOYMENT = complete({
    1: ("replicas", pointer(NUMBER)), 2: ("selector", SELECTOR), 3: ("template", _TEMPLATE),
    4: ("strategy", message({1: ("type", TEXT), 2: ("rollingUpdate", _ROLLING)})), 5: ("minReadySeconds", NUMBER),
    6: ("revisionHistoryLimit", pointer(NUMBER)), 7: ("paused", FLAG),
    9: ("progressDeadlineSeconds", pointer(NUMBER)),
})  # fmt: skip
_JOB = complete({
    1: ("parallelism", pointer(NUMBER)), 2: ("completions", pointer(NUMBER)),
    3: ("activeDeadlineSeconds", pointer(NUMBER)), 4: ("selector", SELECTOR), 5: ("manualSelector", pointer(FLAG)),
    6: ("template", _TEMPLATE), 7: ("backoffLimit", pointer(NUMBER)),
    8: ("ttlSecondsAfterFinished", pointer(NUMBER)), 9: ("completionMode", pointer(TEXT)),
    10: ("suspend", pointer(FLAG)), 12: ("backoffLimitPerIndex", pointer(NUMBER)),
    13: ("maxFailedIndexes", pointer(NUMBER)), 14: ("podReplacementPolicy", pointer(TEXT)),
    15: ("managedBy", pointer(TEXT)),
})  # fmt: skip
_CRON_JOB = complete({
    1: ("schedule", TEXT), 2: ("startingDeadlineSeconds", pointer(NUMBER)), 3: ("concurrencyPolicy", TEXT),
    4: ("suspend", pointer(FLAG)), 5: ("jobTemplate", message({1: ("metadata", META), 2: ("spec", _JOB)})),
    6: ("successfulJobsHistoryLimit", pointer(NUMBER)), 7: ("failedJobsHistoryLimit", pointer(NUMBER)),
    8: ("timeZone", pointer(TEXT)),
})  # fmt: skip
_BUDGET = complete({
    1: ("minAvailable", INT_OR_STRING), 2: ("selector", SELECTOR), 3: ("maxUnavailable", INT_OR_STRING),
    4: ("unhealthyPodEvictionPolicy", pointer(TEXT)),
})  # fmt: skip
_TARGET = message({1: ("kind", TEXT), 2: ("name", TEXT), 3: ("apiVersion", TEXT)})
_AMOUNT = only(TEXT, "0")
_METRIC = complete({
    1: ("type", TEXT),
    4: ("resource", message({1: ("name", TEXT), 2: ("target", message({
        1: ("type", TEXT), 2: ("value", _AMOUNT), 3: ("averageValue", _AMOUNT),
        4: ("averageUtilization", pointer(NUMBER)),
    }))})),
})  # fmt: skip

WORKLOADS: Mapping[tuple[str, str], Layout] = {
    ("apps/v1", "Deployment"): {1: ("metadata", META), 2: ("spec", _DEPLOYMENT)},
    ("batch/v1", "Job"): {1: ("metadata", META), 2: ("spec", _JOB)},
    ("batch/v1", "CronJob"): {1: ("metadata", META), 2: ("spec", _CRON_JOB)},
    ("policy/v1", "PodDisruptionBudget"): {1: ("metadata", META), 2: ("spec", _BUDGET)},
    ("policy/v1", "Eviction"): {1: ("metadata", META), 2: ("deleteOptions", message(DELETE_OPTIONS))},
    ("autoscaling/v1", "HorizontalPodAutoscaler"): {1: ("metadata", META), 2: ("spec", complete({
        1: ("scaleTargetRef", _TARGET), 2: ("minReplicas", pointer(NUMBER)), 3: ("maxReplicas", NUMBER),
        4: ("targetCPUUtilizationPercentage", pointer(NUMBER)),
    }))},
    ("autoscaling/v2", "HorizontalPodAutoscaler"): {1: ("metadata", META), 2: ("spec", complete({
        1: ("scaleTargetRef", _TARGET), 2: ("minReplicas", pointer(NUMBER)), 3: ("maxReplicas", NUMBER),
        4: ("metrics", many(_METRIC)),
    }))},
}  # fmt: skip
