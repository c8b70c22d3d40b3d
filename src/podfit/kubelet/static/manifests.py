"""Reads a manifest into a static pod of this node.

The UID is a hash of what the file says and where it lies: the same file is the same pod, also after a restart of the
kubelet, and a change of a byte that matters is another one.
"""

import hashlib
from datetime import datetime
from typing import Any

import msgspec
import yaml
from msgspec.structs import replace

from podfit.api.core.v1.pods.affinity import Toleration
from podfit.api.core.v1.pods.static_pods import FILE, HASH, SEEN, SOURCE
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.api.core.v1.pods.validation.pod import validate_pod_create
from podfit.api.defaults import apply_defaults
from podfit.api.meta import codec
from podfit.core.features import FeatureGates
from podfit.core.times import format_time
from podfit.decide.node_rights.references import referred_by
from podfit.decide.pod.qos import qos_class
from podfit.net.files import flat

EVERYTHING = Toleration(operator="Exists", effect="NoExecute")


class BadManifest(ValueError):
    """The file is no manifest of one pod; the text says why."""


def read(content: bytes, *, path: str, node: str, now: datetime, gates: FeatureGates) -> Pod:
    """The pod that the file at `path` asks for. Raises BadManifest."""
    document = _document(content)
    try:
        asked = codec.convert(codec.without_nulls(document), Pod)
    except msgspec.ValidationError as error:
        raise BadManifest(str(error)) from error
    if asked.metadata.deletion_timestamp is not None:
        raise BadManifest("a static pod has no deletionTimestamp")
    if referred := referred_by(asked.spec):  # a node may not show a mirror of it, and may not read what it names
        raise BadManifest(f"static pods may not reference {referred}")
    where = f"{node}\0{path}\0".encode()
    uid = hashlib.md5(where + codec.encode(asked), usedforsecurity=False).hexdigest()
    pod = apply_defaults(_placed(asked, node, uid, format_time(now)), gates)
    errors = validate_pod_create(pod, gates)
    if errors:
        raise BadManifest("; ".join(map(str, errors)))
    return replace(pod, status=PodStatus(phase="Pending", qos_class=qos_class(pod, gates)))


def _document(content: bytes) -> dict[str, Any]:
    try:
        documents = [document for document in yaml.safe_load_all(content) if document is not None]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadManifest(f"neither YAML nor JSON: {flat(error)}") from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise BadManifest("a manifest holds one object")
    document: dict[str, Any] = documents[0]
    if (document.get("apiVersion"), document.get("kind")) != ("v1", "Pod"):
        raise BadManifest(f"a manifest is a v1 Pod, not {document.get('apiVersion')} {document.get('kind')}")
    return document


def _placed(asked: Pod, node: str, uid: str, seen: str) -> Pod:
    meta = asked.metadata
    marks = {SOURCE: FILE, HASH: uid, SEEN: seen}
    return replace(
        asked,
        metadata=replace(
            meta,
            name=f"{meta.name}-{node.lower()}" if meta.name else "",
            namespace=meta.namespace or "default",
            uid=uid,
            annotations={**meta.annotations, **marks},
        ),
        spec=replace(asked.spec, node_name=node, tolerations=(*asked.spec.tolerations, EVERYTHING)),
    )
