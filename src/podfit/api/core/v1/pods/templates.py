"""Pods to be: what controllers make pods from."""

from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.meta.base import Object, Struct, always
from podfit.api.meta.v1.types import ObjectMeta


class PodTemplateSpec(Struct):
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: PodSpec = always(default=PodSpec())


class PodTemplate(Object):
    kind: str = always(default="PodTemplate")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    template: PodTemplateSpec = always(default=PodTemplateSpec())
