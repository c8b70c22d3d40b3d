"""CertificateApproval, CertificateSigning and CertificateSubjectRestriction: who may approve, sign and ask for what.

CertificateApproval and CertificateSigning: the right to write `certificatesigningrequests/approval` or `/status` is not
enough, who does must hold `approve` or `sign` on the signer, by its name or as `DOMAIN/*`.
"""

from typing import Any

from podfit.api.certificates.v1.types import GROUP, CertificateSigningRequest
from podfit.apiserver.admission.chain import BasePlugin, PluginScope
from podfit.apiserver.authz.authorize import Authorizer
from podfit.apiserver.authz.question import Question
from podfit.apiserver.context import Attributes, Context
from podfit.core.errors import ApiError, forbidden
from podfit.core.times import format_time
from podfit.decide.certificates import CLIENT, MASTERS, dated
from podfit.net.certificate_signing import read


class CertificateAdmission(BasePlugin):
    scope = PluginScope(kinds=(CertificateSigningRequest,))

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._authorizer = Authorizer(context)

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        """Conditions get their times."""
        if attributes.subresource:
            return dated(obj, attributes.old, format_time(self.context.clock.now()))
        return obj

    async def validate(self, attributes: Attributes, obj: Any) -> None:
        if attributes.operation == "CREATE":
            _check_subject(attributes, obj)
        elif attributes.subresource == "approval":
            await self._require(attributes, "approve")
        elif attributes.subresource == "status" and obj.status.certificate != attributes.old.status.certificate:
            await self._require(attributes, "sign")

    async def _require(self, attributes: Attributes, verb: str) -> None:
        signer = attributes.old.spec.signer_name
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            verdict = await self._authorizer.judge(attributes.identity, Question(verb, GROUP, "signers", name=name))
            if verdict.allowed:
                return
        raise _refused(attributes, f'user not permitted to {verb} requests with signerName "{signer}"')


def _check_subject(attributes: Attributes, request: CertificateSigningRequest) -> None:
    """CertificateSubjectRestriction: no certificate that is above all authorization."""
    if request.spec.signer_name == CLIENT and MASTERS in read(request.spec.request).organizations:
        raise _refused(attributes, f"use of {CLIENT} signer with {MASTERS} group is not allowed")


def _refused(attributes: Attributes, text: str) -> ApiError:
    return forbidden(attributes.info.resource, attributes.name, text, group=GROUP)
