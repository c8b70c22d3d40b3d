"""The strategy of requests for certificates: who asks is who sends it, and approval and answer are written apart."""

from collections.abc import Sequence

from podfit.api.certificates.v1.types import CertificateSigningRequest
from podfit.api.certificates.v1.validation import validate_approval
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.validation import validate_create, validate_status
from podfit.apiserver.registry.strategies.strategy import Strategy, UpdateStrategy
from podfit.core.features import FeatureGates
from podfit.core.fields import FieldError, invalid
from podfit.decide import certificates
from podfit.net.certificate_signing import certificate_problem, request_problem
from podfit.net.wire import Identity

_Request = CertificateSigningRequest


def _asked(obj: _Request, who: Identity) -> tuple[_Request, Sequence[str]]:
    return certificates.asked_by(obj, who.user, who.uid, who.groups, dict(who.extra)), ()


def _create_errors(obj: _Request, gates: FeatureGates) -> list[FieldError]:
    errors = validate_create(obj, gates)
    if problem := request_problem(obj.spec.request):
        errors.insert(0, invalid("spec.request", obj.spec.request, problem))
    return errors


def _changed(_info: ResourceInfo, new: _Request, old: _Request, _gates: FeatureGates) -> _Request:
    return certificates.unchanged(new, old)


def _answered(_info: ResourceInfo, new: _Request, old: _Request, _gates: FeatureGates) -> _Request:
    return certificates.answered(new, old)


def _answer_errors(new: _Request, old: _Request, _gates: FeatureGates) -> list[FieldError]:
    errors, data = validate_status(new, old), new.status.certificate
    if data and data != old.status.certificate and (problem := certificate_problem(data)):
        errors.append(invalid("status.certificate", "<certificate data>", problem))
    return errors


def _approved(_info: ResourceInfo, new: _Request, old: _Request, _gates: FeatureGates) -> _Request:
    return certificates.judged(new, old)


def _approval_errors(new: _Request, old: _Request, _gates: FeatureGates) -> list[FieldError]:
    return validate_approval(new, old)


STRATEGIES: dict[type[Object], Strategy] = {
    CertificateSigningRequest: Strategy(
        complete=_asked,
        validate_create=_create_errors,
        update=UpdateStrategy(prepare=_changed),
        subresources={
            "status": UpdateStrategy(prepare=_answered, validate=_answer_errors),
            "approval": UpdateStrategy(prepare=_approved, validate=_approval_errors),
        },
        resets={
            "": {"f:spec": {}, "f:status": {}},
            "status": {"f:spec": {}, "f:status": {"f:conditions": {}}},
            "approval": {"f:spec": {}, "f:status": {"f:certificate": {}}},
        },
    )
}
