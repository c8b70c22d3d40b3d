"""Protobuf bodies as kubectl 1.32 really sent them, by the command, and what they say."""

from base64 import b64encode
from typing import Any

RBAC = "rbac.authorization.k8s.io"
DOCKER = b'{"auths":{"https://index.docker.io/v1/":{"username":"u","password":"p","auth":"dTpw"}}}'
CAPTURED: dict[str, tuple[str, dict[str, Any]]] = {
    "create namespace foo": (
        "azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhsKEwoDZm9vEgAaACIAKgAyADgAQgASABoCCgAaACIA",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foo"}, "spec": {}, "status": {}},
    ),
    "create configmap a --from-literal=a=b --from-file=b=bin": (
        "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEiUKEQoBYRIAGgAiACoAMgA4AEIAEgYKAWESAWIaCAoBYhIDa/94GgAiAA==",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a"},
            "data": {"a": "b"},
            "binaryData": {"b": "a/94"},
        },
    ),
    "create secret generic s --from-literal=a=b": (
        "azhzAAoMCgJ2MRIGU2VjcmV0Eh0KEQoBcxIAGgAiACoAMgA4AEIAEgYKAWESAWIaABoAIgA=",
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "Yg=="}},
    ),
    "create secret docker-registry d --docker-username=u --docker-password=p": (
        (
            "azhzAAoMCgJ2MRIGU2VjcmV0EqEBChEKAWQSABoAIgAqADIAOABCABJsChEuZG9ja2VyY29uZmlnanNvbhJXeyJhdXRocyI6eyJodHRwczovL2luZGV4"
            "LmRvY2tlci5pby92MS8iOnsidXNlcm5hbWUiOiJ1IiwicGFzc3dvcmQiOiJwIiwiYXV0aCI6ImRUcHcifX19Gh5rdWJlcm5ldGVzLmlvL2RvY2tlcmNv"
            "bmZpZ2pzb24aACIA"
        ),
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "d"},
            "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": b64encode(DOCKER).decode()},
        },
    ),
    "create serviceaccount x": (
        "azhzAAoUCgJ2MRIOU2VydmljZUFjY291bnQSEwoRCgF4EgAaACIAKgAyADgAQgAaACIA",
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}},
    ),
    "create role r --verb=get,list --resource=pods,pods/log --resource-name=n": (
        (
            "azhzAAokChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgRSb2xlEjUKEQoBchIAGgAiACoAMgA4AEIAEiAKA2dldAoEbGlzdBIAGgRwb2RzGghw"
            "b2RzL2xvZyIBbhoAIgA="
        ),
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "Role",
            "metadata": {"name": "r"},
            "rules": [
                {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"], "resourceNames": ["n"]}
            ],
        },
    ),
    "create rolebinding rb --role=r --user=u --group=g --serviceaccount=default:x": (
        (
            "azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtSb2xlQmluZGluZxKrAQoSCgJyYhIAGgAiACoAMgA4AEIAEiYKBFVzZXISGXJiYWMu"
            "YXV0aG9yaXphdGlvbi5rOHMuaW8aAXUiABInCgVHcm91cBIZcmJhYy5hdXRob3JpemF0aW9uLms4cy5pbxoBZyIAEh4KDlNlcnZpY2VBY2NvdW50EgAa"
            "AXgiB2RlZmF1bHQaJAoZcmJhYy5hdXRob3JpemF0aW9uLms4cy5pbxIEUm9sZRoBchoAIgA="
        ),
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "rb"},
            "subjects": [
                {"kind": "User", "apiGroup": RBAC, "name": "u"},
                {"kind": "Group", "apiGroup": RBAC, "name": "g"},
                {"kind": "ServiceAccount", "name": "x", "namespace": "default"},
            ],
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "r"},
        },
    ),
    "create clusterrole cr --verb=get --non-resource-url=/healthz": (
        (
            "azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtDbHVzdGVyUm9sZRIlChIKAmNyEgAaACIAKgAyADgAQgASDwoDZ2V0KggvaGVhbHRo"
            "ehoAIgA="
        ),
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "cr"},
            "rules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
        },
    ),
    "create clusterrole cr2 --aggregation-rule=a=b": (
        (
            "azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtDbHVzdGVyUm9sZRIhChMKA2NyMhIAGgAiACoAMgA4AEIAGgoKCAoGCgFhEgFiGgAi"
            "AA=="
        ),
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "cr2"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
        },
    ),
    "create clusterrolebinding crb --clusterrole=cr --user=u": (
        (
            "azhzAAoyChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEhJDbHVzdGVyUm9sZUJpbmRpbmcSawoTCgNjcmISABoAIgAqADIAOABCABImCgRVc2Vy"
            "EhlyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvGgF1IgAaLAoZcmJhYy5hdXRob3JpemF0aW9uLms4cy5pbxILQ2x1c3RlclJvbGUaAmNyGgAiAA=="
        ),
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "crb"},
            "subjects": [{"kind": "User", "apiGroup": RBAC, "name": "u"}],
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cr"},
        },
    ),
    "create priorityclass pc --value=-5 --description=hello --preemption-policy=Never": (
        (
            "azhzAAolChRzY2hlZHVsaW5nLms4cy5pby92MRINUHJpb3JpdHlDbGFzcxIvChIKAnBjEgAaACIAKgAyADgAQgAQ+///////////ARgAIgVoZWxsbyoF"
            "TmV2ZXIaACIA"
        ),
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "pc"},
            "value": -5,
            "description": "hello",
            "preemptionPolicy": "Never",
        },
    ),
    "create quota q --hard=cpu=1,memory=1Gi,pods=5 --scopes=NotTerminating": (
        (
            "azhzAAoTCgJ2MRINUmVzb3VyY2VRdW90YRJRChEKAXESABoAIgAqADIAOABCABI6CgoKA2NwdRIDCgExCg8KBm1lbW9yeRIFCgMxR2kKCwoEcG9kcxID"
            "CgE1Eg5Ob3RUZXJtaW5hdGluZxoAGgAiAA=="
        ),
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q"},
            "spec": {"hard": {"cpu": "1", "memory": "1Gi", "pods": "5"}, "scopes": ["NotTerminating"]},
            "status": {},
        },
    ),
    "create token default --duration=1h --audience=a --bound-object-kind=Pod --bound-object-name=p": (
        (
            "azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBIwChAKABIAGgAiACoAMgA4AEIAEhYKAWEaDgoDUG9kEgJ2MRoBcCIA"
            "IJAcGgQKABIAGgAiAA=="
        ),
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {},
            "spec": {
                "audiences": ["a"],
                "expirationSeconds": 3600,
                "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"},
            },
            "status": {},
        },
    ),
    "drain n1": ("azhzAAoTCgJ2MRINRGVsZXRlT3B0aW9ucxIAGgAiAA==", {"apiVersion": "v1", "kind": "DeleteOptions"}),
    "drain n1 --grace-period=0": (
        "azhzAAoTCgJ2MRINRGVsZXRlT3B0aW9ucxICCAAaACIA",
        {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0},
    ),
    (
        "create ingress i --class=c --rule=a.b/x=s:8080,tls=t --rule=a.b/*=s2:http --annotation=k=v "
        "--default-backend=d:80"
    ): (
        (
            "azhzAAofChRuZXR3b3JraW5nLms4cy5pby92MRIHSW5ncmVzcxKAAQoZCgFpEgAaACIAKgAyADgAQgBiBgoBaxIBdhJfCgsiCQoBZBIECgAQUBII"
            "CgNhLmISAXQaQwoDYS5iEjwKOgoZCgIveBIMIgoKAXMSBQoAEJA/GgVFeGFjdAodCgEvEhAiDgoCczISCAoEaHR0cBAAGgZQcmVmaXgiAWMaAgoA"
            "GgAiAA=="
        ),
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "i", "annotations": {"k": "v"}},
            "spec": {
                "ingressClassName": "c",
                "defaultBackend": {"service": {"name": "d", "port": {"number": 80}}},
                "tls": [{"hosts": ["a.b"], "secretName": "t"}],
                "rules": [
                    {
                        "host": "a.b",
                        "http": {
                            "paths": [
                                {
                                    "path": "/x",
                                    "pathType": "Exact",
                                    "backend": {"service": {"name": "s", "port": {"number": 8080}}},
                                },
                                {
                                    "path": "/",
                                    "pathType": "Prefix",
                                    "backend": {"service": {"name": "s2", "port": {"name": "http"}}},
                                },
                            ]
                        },
                    }
                ],
            },
            "status": {"loadBalancer": {}},
        },
    ),
    "create cronjob cj --image=i --schedule='*/5 * * * *' --restart=Never -- date --dry-run=server": (
        (
            "azhzAAoTCghiYXRjaC92MRIHQ3JvbkpvYhKtAQoSCgJjahIAGgAiACoAMgA4AEIAEpQBCgsqLzUgKiAqICogKhoAKoIBChIKAmNqEgAaACIAKgAy"
            "ADgAQgASbDJqChAKABIAGgAiACoAMgA4AEIAElYSMwoCY2oSAWkaBGRhdGUaEC0tZHJ5LXJ1bj1zZXJ2ZXIqAEIAagByAIABAIgBAJABAKIBABoF"
            "TmV2ZXIyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBABoAGgAiAA=="
        ),
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "cj"},
            "spec": {
                "schedule": "*/5 * * * *",
                "jobTemplate": {
                    "metadata": {"name": "cj"},
                    "spec": {
                        "template": {
                            "metadata": {},
                            "spec": {
                                "restartPolicy": "Never",
                                "containers": [
                                    {
                                        "name": "cj",
                                        "image": "i",
                                        "command": ["date", "--dry-run=server"],
                                        "resources": {},
                                    }
                                ],
                            },
                        }
                    },
                },
            },
            "status": {},
        },
    ),
    "create deployment d --image=i --replicas=3 --port=80": (
        (
            "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50EqcBChsKAWQSABoAIgAqADIAOABCAFoICgNhcHASAWQSeggDEgoKCAoDYXBwEgFkGmIKGgoAEgAa"
            "ACIAKgAyADgAQgBaCAoDYXBwEgFkEkQSJgoBaRIBaSoAMgoKABAAGFAiACoAQgBqAHIAgAEAiAEAkAEAogEAGgAyAEIASgBSAFgAYABoAIIBAIoB"
            "AJoBAMIBACICCgAoADgAGgwIABAAGAAgACgAOAAaACIA"
        ),
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d", "labels": {"app": "d"}},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "d"}},
                "strategy": {},
                "template": {
                    "metadata": {"labels": {"app": "d"}},
                    "spec": {
                        "containers": [{"name": "i", "image": "i", "ports": [{"containerPort": 80}], "resources": {}}]
                    },
                },
            },
            "status": {},
        },
    ),
    "create poddisruptionbudget p --selector=a=b --min-available=50%": (
        (
            "azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSNgoRCgFwEgAaACIAKgAyADgAQgASFQoJCAEQABoDNTAlEggKBgoBYRIBYhoK"
            "CAAYACAAKAAwABoAIgA="
        ),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "p"},
            "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
            "status": {},
        },
    ),
    "autoscale deployment d1 --min=1 --max=5 --cpu-percent=80": (
        (
            "azhzAAopCg5hdXRvc2NhbGluZy92MRIXSG9yaXpvbnRhbFBvZEF1dG9zY2FsZXISPQoSCgJkMRIAGgAiACoAMgA4AEIAEiEKGQoKRGVwbG95bWVu"
            "dBICZDEaB2FwcHMvdjEQARgFIFAaBBgAIAAaACIA"
        ),
        {
            "apiVersion": "autoscaling/v1",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "d1"},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d1", "apiVersion": "apps/v1"},
                "minReplicas": 1,
                "maxReplicas": 5,
                "targetCPUUtilizationPercentage": 80,
            },
            "status": {},
        },
    ),
    "create service nodeport np --tcp=80:http --node-port=30200": (
        (
            "azhzAAoNCgJ2MRIHU2VydmljZRJqCh0KAm5wEgAaACIAKgAyADgAQgBaCQoDYXBwEgJucBJFCiAKBzgwLWh0dHASA1RDUBhQIgoIARAAGgRodHRw"
            "KPjrARIJCgNhcHASAm5wGgAiCE5vZGVQb3J0OgBCAFIAWgBgAGgAGgIKABoAIgA="
        ),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "np", "labels": {"app": "np"}},
            "spec": {
                "type": "NodePort",
                "selector": {"app": "np"},
                "ports": [{"name": "80-http", "protocol": "TCP", "port": 80, "targetPort": "http", "nodePort": 30200}],
            },
            "status": {"loadBalancer": {}},
        },
    ),
}
