"""Approval of CRDs in Kubernetes' own groups: the annotation `api-approved.kubernetes.io` and its condition."""

import re

APPROVAL = "api-approved.kubernetes.io"


def is_protected(group: str) -> bool:
    """Whether the group is Kubernetes' own, for which somebody has to have said yes."""
    return group.endswith((".k8s.io", ".kubernetes.io")) or group in ("k8s.io", "kubernetes.io")


def approval(annotation: str) -> tuple[str, str, str]:
    """Status, reason and message of the condition about an annotation; no status for one that says nothing."""
    if annotation.startswith("unapproved"):
        return "False", "UnapprovedAnnotation", f'not approved: "{annotation}"'
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s]+", annotation):
        return "True", "ApprovedAnnotation", f"approved in {annotation}"
    return "", "", ""
