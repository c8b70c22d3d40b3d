"""Validation of access reviews."""

from podfit.api.authorization.v1.types import (
    FieldSelectorAttributes,
    LabelSelectorAttributes,
    LocalSubjectAccessReview,
    ResourceAttributes,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
    SubjectAccessReview,
)
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.fields import FieldError, invalid, required

AccessReview = SelfSubjectAccessReview | SubjectAccessReview | LocalSubjectAccessReview


def validate_access_review(review: AccessReview) -> list[FieldError]:
    """Also that it has no metadata, but for the namespace of a local one."""
    errors = _attributes(review.spec)
    if not isinstance(review, SelfSubjectAccessReview) and not (review.spec.user or review.spec.groups):
        errors.append(invalid("spec.user", review.spec.user, "at least one of user or group must be specified"))
    if isinstance(review, LocalSubjectAccessReview):
        return errors + _local(review)
    return errors + _bare(review.metadata, ObjectMeta(), "must be empty")


def _local(review: LocalSubjectAccessReview) -> list[FieldError]:
    spec, namespace = review.spec, review.metadata.namespace
    errors = _bare(review.metadata, ObjectMeta(namespace=namespace), "must be empty except for namespace")
    if spec.resource_attributes is not None and spec.resource_attributes.namespace != namespace:
        given = spec.resource_attributes.namespace
        errors.append(invalid("spec.resourceAttributes.namespace", given, "must match metadata.namespace"))
    if spec.non_resource_attributes is not None:
        shown = _path_shown(spec)
        errors.append(invalid("spec.nonResourceAttributes", shown, "disallowed on this kind of request"))
    return errors


def _bare(given: ObjectMeta, allowed: ObjectMeta, text: str) -> list[FieldError]:
    return [] if given == allowed else [invalid("metadata", given, text)]


def _attributes(spec: SelfSubjectAccessReviewSpec) -> list[FieldError]:
    of_resource, of_path = spec.resource_attributes, spec.non_resource_attributes
    if of_resource is not None and of_path is not None:
        text = "cannot be specified in combination with resourceAttributes"
        return [invalid("spec.nonResourceAttributes", _path_shown(spec), text)]
    if of_resource is None and of_path is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [invalid("spec.resourceAttributes", None, text)]
    return _selectors(of_resource) if of_resource is not None else []


def _path_shown(spec: SelfSubjectAccessReviewSpec) -> dict[str, str]:
    of_path = spec.non_resource_attributes
    return {"Path": of_path.path, "Verb": of_path.verb} if of_path else {}


def _selectors(of_resource: ResourceAttributes) -> list[FieldError]:
    errors = []
    given = {"fieldSelector": of_resource.field_selector, "labelSelector": of_resource.label_selector}
    for name, selector in given.items():
        if selector is not None:
            errors += _selector(selector, f"spec.resourceAttributes.{name}")
    return errors


def _selector(selector: FieldSelectorAttributes | LabelSelectorAttributes, path: str) -> list[FieldError]:
    if selector.raw_selector and selector.requirements:
        where = f"{path}.rawSelector"
        return [invalid(where, selector.raw_selector, "may not specified at the same time as requirements")]
    if not selector.raw_selector and not selector.requirements:
        return [required(f"{path}.requirements", f"when {path} is specified, requirements or rawSelector is required")]
    keys = [requirement.key for requirement in selector.requirements]
    return [required(f"{path}.requirements[{at}].key", "must be specified") for at, key in enumerate(keys) if not key]
