"""Options of the VPA's updater and admission controller, and what they share with its recommender."""

import os
import ssl
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from podfit.client.rate_limit import Rate
from podfit.core.clock import Clock
from podfit.core.options import AT_LEAST_1, PORT, Bound, Option, Part, Unit
from podfit.decide.autoscaling.published import NAMESPACE, AdmissionLease
from podfit.process.control.options import (
    BURST,
    KUBECONFIG,
    Connection,
    ControlOptions,
    ElectedOptions,
    Qps,
    SecurePort,
)
from podfit.process.errors import MachineError, UsageError
from podfit.vpa.admission.controller import AdmissionSettings
from podfit.vpa.admission.registration import Registration
from podfit.vpa.admission.webhook import Tls, WebhookOptions
from podfit.vpa.certificates import Certificates, Files, self_made
from podfit.vpa.updater.settings import UpdaterSettings

CIPHERS = {
    f"TLS_ECDHE_{signed}_WITH_{name}": f"ECDHE-{signed}-{openssl}"
    for signed in ("ECDSA", "RSA")
    for name, openssl in (
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    )
}
"""Those of TLS 1.2 that are safe, by the names that Go gives them."""
TLS_VERSIONS = {"tls1_2": ssl.TLSVersion.TLSv1_2, "tls1_3": ssl.TLSVersion.TLSv1_3}


class VpaConnection(Connection, frozen=True, kw_only=True):
    """Beside any cluster, at upstream's pace."""

    kubeconfig: Annotated[
        Path | None, replace(KUBECONFIG, usual="KUBECONFIG, ~/.kube/config, or the pod's account")
    ] = None
    qps: Qps = 50.0
    burst: Annotated[int, replace(BURST, bound=AT_LEAST_1)] = 100


def check_scope(namespace: str, ignored: frozenset[str]) -> None:
    """Raises UsageError."""
    if namespace and ignored:
        raise UsageError("--vpa-object-namespace and --ignored-vpa-object-namespaces: give one of them")


def own_namespace() -> str:
    """Where this process is, as its manifest says."""
    return os.environ.get("NAMESPACE", "") or NAMESPACE


class UpdaterOptions(ElectedOptions, frozen=True, kw_only=True):
    """`podfit vpa updater`: upstream's names and defaults; `upstream-compatible` is podfit's."""

    connection: Annotated[VpaConnection, Part()] = VpaConnection()
    port: SecurePort = 8943
    settings: Annotated[UpdaterSettings, Part()] = UpdaterSettings()
    eviction_rate_limit: Annotated[
        float, Option("Evictions, and resizes, a second; 0 and below are without a limit.")
    ] = -1.0
    eviction_rate_burst: Annotated[int, Option("Of them at once.", bound=AT_LEAST_1)] = 1
    use_admission_controller_status: Annotated[
        bool, Option("Do nothing while no admission controller renews its Lease.")
    ] = True
    admission: Annotated[AdmissionLease, Part()] = msgspec.field(
        default_factory=lambda: AdmissionLease(namespace=own_namespace())
    )

    def updater(self) -> UpdaterSettings:
        """Raises UsageError."""
        check_scope(self.settings.namespace, self.settings.ignored)
        limit = self.eviction_rate_limit
        return replace(
            self.settings,
            eviction_rate=Rate(limit, self.eviction_rate_burst) if limit > 0 else None,
            admission=self.admission if self.use_admission_controller_status else None,
        )


def _labels(text: str) -> dict[str, str]:
    labels = {}
    for label in filter(None, text.split(",")):
        key, colon, value = label.partition(":")
        if not key or not colon:
            raise ValueError(f"{label!r}: write KEY:VALUE")
        labels[key] = value
    return labels


def _ciphers(text: str) -> tuple[str, ...]:
    """OpenSSL's names."""
    names = tuple(name for name in text.replace(":", ",").split(",") if name)
    for name in names:
        if name not in CIPHERS and name not in CIPHERS.values():
            raise ValueError(f"{name!r}: there are {', '.join(CIPHERS)}")
    return tuple(CIPHERS.get(name, name) for name in names)


_USUAL = Registration()


def _of_own_namespace() -> AdmissionSettings:
    usual = AdmissionSettings()
    return replace(usual, lease=replace(usual.lease, namespace=own_namespace()), asks=True)


class AdmissionOptions(ControlOptions, frozen=True, kw_only=True):
    """`podfit vpa admission-controller`: upstream's names and defaults; without certificate files it makes one."""

    connection: Annotated[VpaConnection, Part()] = VpaConnection()
    port: SecurePort = 8944
    settings: Annotated[AdmissionSettings, Part()] = msgspec.field(default_factory=_of_own_namespace)
    client_ca_file: Annotated[Path | None, Option("Who signed the certificate.")] = None
    tls_cert_file: Annotated[
        Path | None, Option("Certificate of the webhook.", usual="one of its own, for a single instance")
    ] = None
    tls_private_key: Annotated[Path | None, Option("Its key.")] = None
    reload_cert: Annotated[bool, Option("Take over these files when they change.")] = False
    tls_ciphers: Annotated[
        tuple[str, ...],
        Option("Of TLS 1.2, separated by commas.", unit=Unit(name="list", read=_ciphers), usual="the usual ones"),
    ] = ()
    min_tls_version: Annotated[
        str, Option("The oldest that is spoken.", unit=Unit(name="tls1_2, tls1_3", flag=Literal["tls1_2", "tls1_3"]))
    ] = "tls1_2"
    webhook_listens: Annotated[int, Option("Of the webhook.", flag="port", bound=PORT)] = WebhookOptions().port
    webhook_bind_address: Annotated[str, Option("Where the webhook listens.")] = WebhookOptions().address
    webhook_service: Annotated[str, Option("The service that leads to it.")] = _USUAL.service
    webhook_address: Annotated[str, Option("Where it is reached, with --register-by-url.")] = ""
    webhook_port: Annotated[str, Option("The port there.", usual="--port")] = ""
    register_by_url: Annotated[bool, Option("Reached at an address instead of by a service.")] = False
    register_webhook: Annotated[bool, Option("Write vpa-webhook-config.")] = True
    webhook_timeout_seconds: Annotated[
        int, Option("How long an API server waits.", bound=Bound("from 1 to 30", lambda value: 1 <= value <= 30))
    ] = _USUAL.timeout
    webhook_failure_policy_fail: Annotated[bool, Option("No pods are made while it does not answer.")] = False
    webhook_labels: Annotated[
        dict[str, str],
        Option("Of vpa-webhook-config.", unit=Unit(name="KEY:VALUE,KEY:VALUE", read=_labels), usual="none"),
    ] = msgspec.field(default_factory=dict)

    def webhook(self) -> WebhookOptions:
        """Raises UsageError."""
        check_scope(self.settings.namespace, self.settings.ignored)
        return WebhookOptions(
            address=self.webhook_bind_address,
            port=self.webhook_listens,
            tls=Tls(TLS_VERSIONS[self.min_tls_version], ":".join(self.tls_ciphers)),
            registration=self._registration() if self.register_webhook else None,
            reloads=self.reload_cert or self.tls_cert_file is None,
        )

    def certificates(self, clock: Clock) -> AbstractContextManager[Certificates]:
        """Raises UsageError, and MachineError for files that cannot be read."""
        certificate, key, authorities = self.tls_cert_file, self.tls_private_key, self.client_ca_file
        if certificate is None and key is None and authorities is None:
            service = f"{self.webhook_service}.{own_namespace()}.svc"
            hosts = (service, *filter(None, (self.webhook_address,)))
            return self_made(clock, hosts, "podfit-vpa-webhook")
        if certificate is None or key is None or authorities is None:
            raise UsageError("--tls-cert-file, --tls-private-key and --client-ca-file: give all three or none")
        for file in (certificate, key, authorities):
            if not os.access(file, os.R_OK):
                raise MachineError(f"{file} cannot be read", fix=("mount the certificates there",))
        return nullcontext(Files(certificate, key, authorities).read)

    def _registration(self) -> Registration:
        if self.register_by_url and not self.webhook_address:
            raise UsageError("--register-by-url: name the address with --webhook-address")
        url = f"https://{self.webhook_address}:{self.webhook_port or self.webhook_listens}"
        return Registration(
            service=self.webhook_service,
            service_namespace=own_namespace(),
            url=url if self.register_by_url else "",
            timeout=self.webhook_timeout_seconds,
            fails=self.webhook_failure_policy_fail,
            namespace=self.settings.namespace,
            ignored=self.settings.ignored,
            labels=self.webhook_labels,
        )
