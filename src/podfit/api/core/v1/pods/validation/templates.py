"""Pod templates inside of controllers: the rules of pods, and that selectors find what is made from the template."""

from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.core.v1.pods.validation.annotations import profiles_match, validate_pod_annotations
from podfit.api.core.v1.pods.validation.pod import validate_pod_spec
from podfit.api.meta.base import IntOrString
from podfit.api.meta.selectors import holds, is_empty, is_usable, requirements
from podfit.api.meta.v1.types import LabelSelector
from podfit.api.meta.validation.metadata import nonnegative, validate_annotations, validate_labels, validate_selector
from podfit.core.features import DEFAULT_GATES
from podfit.core.fields import FieldError, forbidden, invalid, required, unsupported
from podfit.core.numbers import MOST, parse_int

NO_MATCH = "`selector` does not match template `labels`"
_NOT_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
    "regex used for validation is '[0-9]+%')"
)


def validate_template(template: PodTemplateSpec, path: str) -> list[FieldError]:
    errors = validate_labels(template.metadata.labels, f"{path}.labels")
    errors += validate_annotations(template.metadata.annotations, f"{path}.annotations")
    errors += validate_pod_annotations(template.metadata.annotations, template.spec, f"{path}.annotations")
    errors += validate_pod_spec(template.spec, f"{path}.spec", DEFAULT_GATES)
    errors += profiles_match(template.metadata.annotations, template.spec, f"{path}.spec")
    if template.spec.ephemeral_containers:
        text = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", text))
    return errors


def validate_own_selector(selector: LabelSelector | None, path: str, *, owner: str) -> list[FieldError]:
    """A selector that has to be there and to say something; `owner` is the kind that the refusal names."""
    if selector is None:
        return [required(path)]
    errors = validate_selector(selector, path)
    if is_empty(selector):
        errors.append(invalid(path, selector, f"empty selector is invalid for {owner}"))
    return errors


def matches(selector: LabelSelector | None, template: PodTemplateSpec) -> bool:
    """Also true of a selector that cannot be matched, which is wrong for another reason."""
    return not is_usable(selector) or holds(requirements(selector), template.metadata.labels)


def unmatched(template: PodTemplateSpec, path: str) -> FieldError:
    labels = dict(sorted(template.metadata.labels.items())) or None
    return invalid(f"{path}.metadata.labels", labels, NO_MATCH)


def always_restarted(spec: PodSpec, path: str, *, owner: str) -> list[FieldError]:
    """Pods that are to stay restart whatever happens, and have no deadline."""
    errors = []
    if spec.restart_policy != "Always":
        errors.append(unsupported(f"{path}.restartPolicy", spec.restart_policy, ("Always",)))
    if spec.active_deadline_seconds is not None:
        text = f"activeDeadlineSeconds in {owner} is not Supported"
        errors.append(forbidden(f"{path}.activeDeadlineSeconds", text))
    return errors


def int_or_percent(value: IntOrString | None, path: str) -> list[FieldError]:
    if isinstance(value, str):
        return [] if _is_percent(value) else [invalid(path, value, _NOT_PERCENT)]
    return nonnegative(value, path)


def at_most_all(value: IntOrString | None, path: str) -> list[FieldError]:
    over = isinstance(value, str) and _is_percent(value) and _whole(value[:-1]) > 100
    return [invalid(path, value, "must not be greater than 100%")] if over else []


def number_of(value: IntOrString | None) -> int:
    """The number, percent or not; 0 for what is neither."""
    if isinstance(value, str):
        return _whole(value[:-1] if _is_percent(value) else value)
    return value or 0


def _whole(text: str) -> int:
    """0 for what is no number; what is too large is the largest."""
    if not (text.isdecimal() and text.isascii()):
        return 0
    try:
        return parse_int(text)
    except ValueError:
        return MOST


def _is_percent(text: str) -> bool:
    return text.endswith("%") and text[:-1].isdecimal() and text.isascii()
