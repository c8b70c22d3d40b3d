"""The certificate controllers: approve kubelets' requests, sign approved ones, clean up old ones.

    request ─▶ a node's, and who asks may ─▶ approved ─▶ the signer's rules ─▶ certificate, or Failed with what is wrong
                                               ▲
                         kubectl certificate approve

A node's client certificate is approved when the requester holds the right to it (RBAC), its serving certificate when
every name and address in it is that of its Node object (`decide.node.addresses`). What is not approved here waits for a
person, and is looked at again when the Node changes. What names nobody, or says more than is read, fails at once.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec
from msgspec.structs import replace

from podfit.api.authorization.v1.types import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from podfit.api.certificates.v1.types import APPROVED, FAILED, GROUP, CertificateSigningRequest
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.services.types import Endpoints, Service
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.certificates import (
    NODE,
    NODE_SERVING,
    SERVING_MESSAGE,
    SIGNERS,
    RequestedNames,
    is_to_be_signed,
    is_undecided,
    objection,
    out_of_date,
    recognized,
    times,
    unclear,
    with_condition,
)
from podfit.decide.node.addresses import canonical
from podfit.decide.node.serving_certificates import serving_objection
from podfit.net.certificate_signing import ends, read

log = logging.getLogger(__name__)

RESOURCE = "certificatesigningrequests"
HEADLESS = "None"
LOOK_AGAIN = 3600.0  # seconds: the time of day may be set meanwhile


class Signing(msgspec.Struct, frozen=True):
    """What signs: when it ends itself, and a certificate for a request, its uses, from when, until when.

    `served` are the names and addresses for which the API server shows a certificate: no node's.
    """

    ends: Callable[[], datetime]
    sign: Callable[[bytes, tuple[str, ...], datetime, datetime], bytes]
    served: Callable[[], Awaitable[frozenset[str]]]


class CertificateController(Controller[str]):
    def __init__(self, client: Client, *, informers: Informers, clock: Clock, signing: Signing) -> None:
        self._client, self._clock, self._signing = client, clock, signing
        self._requests = informers.of(CertificateSigningRequest)
        self._nodes = informers.of(Node)
        self._services = informers.of(Service)
        self._endpoints = informers.of(Endpoints)
        super().__init__(clock, self._requests, self._nodes, self._services, self._endpoints)
        self._requests.add_handler(
            add=lambda new: self.queue.add(new.metadata.name), update=lambda _, new: self.queue.add(new.metadata.name)
        )
        self._nodes.add_handler(add=self._node_changed, update=self._node_updated, delete=self._node_changed)

    async def reconcile(self, key: str) -> float | None:
        request = self._requests.get(key)
        if request is None:
            return None
        try:
            return await self._step(request)
        except ApiError as error:
            if error.code not in (404, 409):  # gone, or seen again as it is now
                raise
            return None

    async def _step(self, request: CertificateSigningRequest) -> float | None:
        if is_undecided(request):
            await self._approve(request)
        elif is_to_be_signed(request):
            if (ended := self._signing.ends()) <= self._clock.now():
                log.error(
                    "certificate is not signed request=%s reason=the authority ended %s", request.metadata.name, ended
                )
                return LOOK_AGAIN  # the time of day may be set back
            await self._client.update(self._signed(request), subresource="status")
            return None
        return await self._clear(request)

    def _node_updated(self, old: Node, new: Node) -> None:
        if old.status.addresses != new.status.addresses or old.status.daemon_endpoints != new.status.daemon_endpoints:
            self._node_changed(new)

    def _node_changed(self, _: Node) -> None:
        """An address that one node gave up may be asked for by another, so all that wait are looked at."""
        for request in self._requests.list():
            if request.spec.signer_name == NODE_SERVING and is_undecided(request):
                self.queue.add(request.metadata.name)

    async def _approve(self, request: CertificateSigningRequest) -> None:
        asked = _asked(request)
        if request.spec.signer_name in SIGNERS and (problem := unclear(asked)):
            await self._client.update(_failed(request, problem), subresource="status")
            return
        if request.spec.signer_name == NODE_SERVING and request.spec.username.startswith(NODE):
            await self._approve_serving(request, asked)
            return
        for kind in recognized(request, asked):
            if await self._may(request, kind.subresource):
                approved = with_condition(request, APPROVED, "AutoApproved", kind.message)
                await self._client.update(approved, subresource="approval")
                return

    async def _approve_serving(self, request: CertificateSigningRequest, asked: RequestedNames) -> None:
        if why := serving_objection(request, asked, self._nodes.list(), await self._reserved()):
            log.info("serving certificate is not approved request=%s reason=%s", request.metadata.name, why)
            return
        approved = with_condition(request, APPROVED, "AutoApproved", SERVING_MESSAGE)
        await self._client.update(approved, subresource="approval")

    async def _reserved(self) -> frozenset[str]:
        """Where the API server and services are reached: names and addresses that are no node's. Raises ConnectionError
        where the server does not tell; then nothing is approved, and it is tried again.
        """
        subset_addresses = (
            address.ip
            for endpoints in filter(None, (self._endpoints.get("kubernetes", "default"),))
            for subset in endpoints.subsets
            for address in (*subset.addresses, *subset.not_ready_addresses)
        )
        of_services = (
            address
            for service in self._services.list()
            for address in (service.spec.cluster_ip, *service.spec.cluster_ips)
            if address not in ("", HEADLESS)
        )
        return frozenset(map(canonical, (*await self._signing.served(), *subset_addresses, *of_services)))

    async def _may(self, request: CertificateSigningRequest, subresource: str) -> bool:
        asked, access = (
            request.spec,
            ResourceAttributes(verb="create", group=GROUP, resource=RESOURCE, subresource=subresource),
        )
        spec = SubjectAccessReviewSpec(
            user=asked.username, uid=asked.uid, groups=asked.groups, extra=asked.extra, resource_attributes=access
        )
        return (await self._client.create(SubjectAccessReview(spec=spec))).status.allowed

    def _signed(self, request: CertificateSigningRequest) -> CertificateSigningRequest:
        spec = request.spec
        if problem := objection(spec.signer_name, _asked(request), spec.usages):
            return _failed(request, problem)
        begins, until = times(self._clock.now(), spec.expiration_seconds, self._signing.ends())
        certificate = self._signing.sign(spec.request, spec.usages, begins, until)
        log.info("certificate signed request=%s signer=%s ends=%s", request.metadata.name, spec.signer_name, until)
        return replace(request, status=replace(request.status, certificate=certificate))

    async def _clear(self, request: CertificateSigningRequest) -> float | None:
        """Deletes what is over; seconds until it will be."""
        now = self._clock.now()
        due = out_of_date(request, now, _ends(request.status.certificate))
        if due is None:
            return None
        if due > now:
            return min((due - now).total_seconds(), LOOK_AGAIN)
        meta = request.metadata
        await self._client.delete(
            CertificateSigningRequest, meta.name, "", uid=meta.uid, resource_version=meta.resource_version
        )
        return None


def _asked(request: CertificateSigningRequest) -> RequestedNames:
    """What another API server let pass may be no request to this reader."""
    try:
        return read(request.spec.request)
    except ValueError as error:
        return RequestedNames(unread=f"it cannot be read: {error}")


def _failed(request: CertificateSigningRequest, problem: str) -> CertificateSigningRequest:
    return with_condition(request, FAILED, "SignerValidationFailure", problem)


def _ends(certificate: bytes) -> datetime | None:
    try:
        return ends(certificate) if certificate else None
    except ValueError:
        return None
