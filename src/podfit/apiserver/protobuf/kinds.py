"""The layouts of the kinds that clients send as protobuf: field number, name in JSON, and what it holds."""

from collections.abc import Mapping

from podfit.apiserver.protobuf.wire import (
    BINARY,
    BYTES,
    FLAG,
    INT_OR_STRING,
    NUMBER,
    QUANTITIES,
    TEXT,
    TEXTS,
    TIME,
    FieldType,
    Layout,
    json_value,
    many,
    mapping,
    message,
    only,
    pointer,
)

_MANAGED: Layout = {
    1: ("manager", TEXT), 2: ("operation", TEXT), 3: ("apiVersion", TEXT), 4: ("time", TIME),
    6: ("fieldsType", TEXT), 7: ("fieldsV1", only(FieldType(BYTES, json_value), None)), 8: ("subresource", TEXT),
}  # fmt: skip
_OWNER: Layout = {
    1: ("kind", TEXT), 3: ("name", TEXT), 4: ("uid", TEXT), 5: ("apiVersion", TEXT),
    6: ("controller", pointer(FLAG)), 7: ("blockOwnerDeletion", pointer(FLAG)),
}  # fmt: skip
META = message({
    1: ("name", TEXT), 2: ("generateName", TEXT), 3: ("namespace", TEXT), 4: ("selfLink", TEXT), 5: ("uid", TEXT),
    6: ("resourceVersion", TEXT), 7: ("generation", NUMBER), 8: ("creationTimestamp", TIME),
    9: ("deletionTimestamp", TIME), 10: ("deletionGracePeriodSeconds", pointer(NUMBER)), 11: ("labels", mapping(TEXT)),
    12: ("annotations", mapping(TEXT)), 13: ("ownerReferences", many(message(_OWNER))), 14: ("finalizers", TEXTS),
    17: ("managedFields", many(message(_MANAGED))),
})  # fmt: skip
_REFERENCE = message({
    1: ("kind", TEXT), 2: ("namespace", TEXT), 3: ("name", TEXT), 4: ("uid", TEXT), 5: ("apiVersion", TEXT),
    6: ("resourceVersion", TEXT), 7: ("fieldPath", TEXT),
})  # fmt: skip
_CONDITION = message({
    1: ("type", TEXT), 2: ("status", TEXT), 4: ("lastTransitionTime", TIME), 5: ("reason", TEXT),
    6: ("message", TEXT),
})  # fmt: skip
_SCOPE = message({1: ("scopeName", TEXT), 2: ("operator", TEXT), 3: ("values", TEXTS)})
_QUOTA = message({
    1: ("hard", QUANTITIES), 2: ("scopes", TEXTS),
    3: ("scopeSelector", message({1: ("matchExpressions", many(_SCOPE))})),
})  # fmt: skip
_REQUIREMENT = message({1: ("key", TEXT), 2: ("operator", TEXT), 3: ("values", TEXTS)})
SELECTOR = message({1: ("matchLabels", mapping(TEXT)), 2: ("matchExpressions", many(_REQUIREMENT))})
_RULE = message({
    1: ("verbs", TEXTS), 2: ("apiGroups", TEXTS), 3: ("resources", TEXTS), 4: ("resourceNames", TEXTS),
    5: ("nonResourceURLs", TEXTS),
})  # fmt: skip
_SUBJECT = message({1: ("kind", TEXT), 2: ("apiGroup", TEXT), 3: ("name", TEXT), 4: ("namespace", TEXT)})
_ROLE_REF = message({1: ("apiGroup", TEXT), 2: ("kind", TEXT), 3: ("name", TEXT)})
_BINDING: Layout = {1: ("metadata", META), 2: ("subjects", many(_SUBJECT)), 3: ("roleRef", _ROLE_REF)}
_BOUND_OBJECT = message({1: ("kind", TEXT), 2: ("apiVersion", TEXT), 3: ("name", TEXT), 4: ("uid", TEXT)})
_SERVICE_PORT = message({
    1: ("name", TEXT), 2: ("protocol", TEXT), 3: ("port", NUMBER), 4: ("targetPort", INT_OR_STRING),
    5: ("nodePort", NUMBER), 6: ("appProtocol", pointer(TEXT)),
})  # fmt: skip
_AFFINITY = message({1: ("clientIP", message({1: ("timeoutSeconds", pointer(NUMBER))}))})
_SERVICE = message({
    1: ("ports", many(_SERVICE_PORT)), 2: ("selector", mapping(TEXT)), 3: ("clusterIP", TEXT), 4: ("type", TEXT),
    5: ("externalIPs", TEXTS), 7: ("sessionAffinity", TEXT), 8: ("loadBalancerIP", TEXT),
    9: ("loadBalancerSourceRanges", TEXTS), 10: ("externalName", TEXT), 11: ("externalTrafficPolicy", TEXT),
    12: ("healthCheckNodePort", NUMBER), 13: ("publishNotReadyAddresses", FLAG),
    14: ("sessionAffinityConfig", _AFFINITY), 17: ("ipFamilyPolicy", pointer(TEXT)), 18: ("clusterIPs", TEXTS),
    19: ("ipFamilies", TEXTS), 20: ("allocateLoadBalancerNodePorts", pointer(FLAG)),
    21: ("loadBalancerClass", pointer(TEXT)), 22: ("internalTrafficPolicy", pointer(TEXT)),
    23: ("trafficDistribution", pointer(TEXT)),
})  # fmt: skip

_SELECTED = message({1: ("rawSelector", TEXT), 2: ("requirements", many(_REQUIREMENT))})
_ACCESS: Layout = {
    1: ("resourceAttributes", message({
        1: ("namespace", TEXT), 2: ("verb", TEXT), 3: ("group", TEXT), 4: ("version", TEXT), 5: ("resource", TEXT),
        6: ("subresource", TEXT), 7: ("name", TEXT), 8: ("fieldSelector", _SELECTED), 9: ("labelSelector", _SELECTED),
    })),
    2: ("nonResourceAttributes", message({1: ("path", TEXT), 2: ("verb", TEXT)})),
}  # fmt: skip
_ACCESS_OF: Layout = {
    1: ("metadata", META),
    2: ("spec", message({
        **_ACCESS, 3: ("user", TEXT), 4: ("groups", TEXTS), 5: ("extra", mapping(only(TEXTS, []), [])),
        6: ("uid", TEXT),
    })),
}  # fmt: skip

_EXTRA = mapping(only(TEXTS, []), [])
_ASKED = message({
    1: ("request", BINARY), 2: ("username", TEXT), 3: ("uid", TEXT), 4: ("groups", TEXTS), 5: ("usages", TEXTS),
    6: ("extra", _EXTRA), 7: ("signerName", TEXT), 8: ("expirationSeconds", pointer(NUMBER)),
})  # fmt: skip
_ANSWERED = message({
    1: ("type", TEXT), 2: ("reason", TEXT), 3: ("message", TEXT), 4: ("lastUpdateTime", TIME),
    5: ("lastTransitionTime", TIME), 6: ("status", TEXT),
})  # fmt: skip

_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io/v1", "authorization.k8s.io/v1"
_RBAC = "rbac.authorization.k8s.io/v1"
KINDS: Mapping[tuple[str, str], Layout] = {
    ("v1", "Namespace"): {
        1: ("metadata", META), 2: ("spec", message({1: ("finalizers", TEXTS)})),
        3: ("status", message({1: ("phase", TEXT), 2: ("conditions", many(_CONDITION))})),
    },
    ("v1", "ConfigMap"): {
        1: ("metadata", META), 2: ("data", mapping(TEXT)), 3: ("binaryData", mapping(BINARY)),
        4: ("immutable", pointer(FLAG)),
    },
    ("v1", "Secret"): {
        1: ("metadata", META), 2: ("data", mapping(BINARY)), 3: ("type", TEXT), 4: ("stringData", mapping(TEXT)),
        5: ("immutable", pointer(FLAG)),
    },
    ("v1", "ServiceAccount"): {
        1: ("metadata", META), 2: ("secrets", many(_REFERENCE)),
        3: ("imagePullSecrets", many(message({1: ("name", TEXT)}))),
        4: ("automountServiceAccountToken", pointer(FLAG)),
    },
    ("v1", "ResourceQuota"): {
        1: ("metadata", META), 2: ("spec", _QUOTA),
        3: ("status", message({1: ("hard", QUANTITIES), 2: ("used", QUANTITIES)})),
    },
    ("v1", "Service"): {1: ("metadata", META), 2: ("spec", _SERVICE)},
    (_RBAC, "Role"): {1: ("metadata", META), 2: ("rules", many(_RULE))},
    (_RBAC, "RoleBinding"): _BINDING,
    (_RBAC, "ClusterRole"): {
        1: ("metadata", META), 2: ("rules", many(_RULE)),
        3: ("aggregationRule", message({1: ("clusterRoleSelectors", many(SELECTOR))})),
    },
    (_RBAC, "ClusterRoleBinding"): _BINDING,
    ("certificates.k8s.io/v1", "CertificateSigningRequest"): {
        1: ("metadata", META), 2: ("spec", _ASKED),
        3: ("status", message({1: ("conditions", many(_ANSWERED)), 2: ("certificate", BINARY)})),
    },
    ("scheduling.k8s.io/v1", "PriorityClass"): {
        1: ("metadata", META), 2: ("value", NUMBER), 3: ("globalDefault", FLAG), 4: ("description", TEXT),
        5: ("preemptionPolicy", pointer(TEXT)),
    },
    (_AUTHENTICATION, "TokenRequest"): {
        1: ("metadata", META),
        2: ("spec", message({1: ("audiences", TEXTS), 3: ("boundObjectRef", _BOUND_OBJECT),
                              4: ("expirationSeconds", pointer(NUMBER))})),
    },
    (_AUTHENTICATION, "TokenReview"): {
        1: ("metadata", META), 2: ("spec", message({1: ("token", TEXT), 2: ("audiences", TEXTS)})),
    },
    (_AUTHENTICATION, "SelfSubjectReview"): {1: ("metadata", META)},
    (_AUTHORIZATION, "SelfSubjectAccessReview"): {1: ("metadata", META), 2: ("spec", message(_ACCESS))},
    (_AUTHORIZATION, "SubjectAccessReview"): _ACCESS_OF,
    (_AUTHORIZATION, "LocalSubjectAccessReview"): _ACCESS_OF,
    (_AUTHORIZATION, "SelfSubjectRulesReview"): {
        1: ("metadata", META), 2: ("spec", message({1: ("namespace", TEXT)})),
    },
}  # fmt: skip
DELETE_OPTIONS: Layout = {
    1: ("gracePeriodSeconds", pointer(NUMBER)),
    2: ("preconditions", message({1: ("uid", pointer(TEXT)), 2: ("resourceVersion", pointer(TEXT))})),
    3: ("orphanDependents", pointer(FLAG)), 4: ("propagationPolicy", pointer(TEXT)), 5: ("dryRun", TEXTS),
    6: ("ignoreStoreReadErrorWithClusterBreakingPotential", pointer(FLAG)),
}  # fmt: skip
