"""The resource entry of CustomResourceDefinition."""

from podfit.api.apiextensions.v1.types import GROUP, CustomResourceDefinition
from podfit.api.meta.columns import DATED, dated_row
from podfit.api.meta.resource_info import STATUS, ResourceInfo

KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=CustomResourceDefinition,
        group=GROUP,
        resource="customresourcedefinitions",
        upstream_key="apiextensions.k8s.io/customresourcedefinitions",
        singular="customresourcedefinition",
        short_names=("crd", "crds"),
        namespaced=False,
        categories=("api-extensions",),
        subresources=(STATUS,),
        columns=DATED,
        row=dated_row,
        unconditional=False,
        stored_as="v1beta1",  # upstream's, which clients see the hash of
    ),
)
