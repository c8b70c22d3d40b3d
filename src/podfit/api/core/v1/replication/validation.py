"""Replication controllers and pod templates."""

from podfit.api.core.v1.pods.templates import PodTemplate
from podfit.api.core.v1.pods.validation.templates import always_restarted, unmatched, validate_template
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.meta.base import Object
from podfit.api.meta.validation.metadata import nonnegative
from podfit.api.meta.validation.rules import Rules
from podfit.api.meta.validation.statuses import at_most_replicas, counts
from podfit.core.fields import FieldError, invalid, required


def validate_controller(controller: ReplicationController) -> list[FieldError]:
    spec, path = controller.spec, "spec.template"
    errors = nonnegative(spec.min_ready_seconds, "spec.minReadySeconds")
    if not spec.selector:
        errors.append(required("spec.selector"))
    errors += nonnegative(spec.replicas, "spec.replicas")
    if spec.template is None:
        return [*errors, required(path)]
    if not spec.selector.items() <= spec.template.metadata.labels.items():
        errors.append(unmatched(spec.template, path))
    errors += validate_template(spec.template, path)
    return errors + always_restarted(spec.template.spec, f"{path}.spec", owner="ReplicationController")


def validate_controller_status(new: ReplicationController, _old: ReplicationController) -> list[FieldError]:
    status = new.status
    errors = counts(
        status, "replicas", "fully_labeled_replicas", "ready_replicas", "available_replicas", "observed_generation"
    )
    errors += at_most_replicas(status, "fully_labeled_replicas", "ready_replicas", "available_replicas")
    if status.available_replicas > status.ready_replicas:
        text = "cannot be greater than readyReplicas"
        errors.append(invalid("status.availableReplicas", status.available_replicas, text))
    return errors


def validate_pod_template(template: PodTemplate) -> list[FieldError]:
    return validate_template(template.template, "template")


RULES: dict[type[Object], Rules] = {
    ReplicationController: Rules(create=validate_controller, status=validate_controller_status, metadata="both"),
    PodTemplate: Rules(create=validate_pod_template),
}
