"""`podfit vpa admission-controller`: it gives new pods what is recommended, beside any cluster."""

import os
import ssl
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from podfit.cli.control import run_process
from podfit.cli.flags import Log, LogFlags
from podfit.cli.vpa_common import ElectionFlags, VpaProcess, VpaProcessFlags, amount, control_options, duration
from podfit.core.clock import Clock
from podfit.net.metrics import Metrics
from podfit.net.system import SystemClock
from podfit.process.control.control_process import ClientOf
from podfit.process.control.controllers import Loop
from podfit.process.errors import MachineError, UsageError
from podfit.process.vpa.loops import admission_loops
from podfit.vpa.admission.controller import AdmissionSettings
from podfit.vpa.admission.registration import Registration
from podfit.vpa.admission.status import StatusLease
from podfit.vpa.admission.webhook import Certificates, Files, Tls, WebhookOptions, self_made

NAMESPACE = "kube-system"
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


@dataclass(frozen=True, kw_only=True)
class VpaAdmissionFlags:
    """Upstream's names and defaults; without certificate files it makes a certificate."""

    client_ca_file: Annotated[Path | None, Parameter(help="Who signed the certificate.")] = None
    tls_cert_file: Annotated[
        Path | None, Parameter(help="Certificate of the webhook. [default: one of its own, for a single instance]")
    ] = None
    tls_private_key: Annotated[Path | None, Parameter(help="Its key.")] = None
    reload_cert: Annotated[bool, Parameter(help="Take over these files when they change.")] = False
    tls_ciphers: Annotated[str, Parameter(help="Of TLS 1.2, separated by commas. [default: the usual ones]")] = ""
    min_tls_version: Annotated[Literal["tls1_2", "tls1_3"], Parameter(help="The oldest that is spoken.")] = "tls1_2"
    port: Annotated[int, Parameter(help="Of the webhook.")] = 8000
    webhook_bind_address: Annotated[str, Parameter(help="Where the webhook listens.")] = "0.0.0.0"
    webhook_service: Annotated[str, Parameter(help="The service that leads to it.")] = "vpa-webhook"
    webhook_address: Annotated[str, Parameter(help="Where it is reached, with --register-by-url.")] = ""
    webhook_port: Annotated[str, Parameter(help="The port there. [default: --port]")] = ""
    register_by_url: Annotated[bool, Parameter(help="Reached at an address instead of by a service.")] = False
    register_webhook: Annotated[bool, Parameter(help="Write vpa-webhook-config.")] = True
    webhook_timeout_seconds: Annotated[int, Parameter(help="How long an API server waits.")] = 30
    webhook_failure_policy_fail: Annotated[bool, Parameter(help="No pods are made while it does not answer.")] = False
    webhook_labels: Annotated[str, Parameter(help="Of vpa-webhook-config: KEY:VALUE,KEY:VALUE.")] = ""
    status_lease_name: Annotated[str, Parameter(help="By which updaters see it.")] = "vpa-admission-controller"
    status_lease_namespace: Annotated[str, Parameter(help="[default: NAMESPACE, else kube-system]")] = ""
    status_lease_update_interval: Annotated[str, Parameter(help="How often it is renewed.")] = "10s"
    max_allowed_cpu_boost: Annotated[str, Parameter(help="The most CPU of a container that starts.")] = ""

    def settings(self, process: VpaProcessFlags) -> AdmissionSettings:
        """Raises UsageError."""
        lease = StatusLease(
            name=self.status_lease_name,
            namespace=self.status_lease_namespace or _namespace(),
            interval=duration(self.status_lease_update_interval, "--status-lease-update-interval"),
        )
        return AdmissionSettings(
            gates=process.gates,
            most_boost=amount(self.max_allowed_cpu_boost, "--max-allowed-cpu-boost"),
            namespace=process.vpa_object_namespace,
            ignored=process.ignored,
            lease=lease,
        )

    def webhook(self, process: VpaProcessFlags) -> WebhookOptions:
        """Raises UsageError."""
        if not 1 <= self.webhook_timeout_seconds <= 30:
            raise UsageError(f"--webhook-timeout-seconds {self.webhook_timeout_seconds}: it has to be from 1 to 30")
        return WebhookOptions(
            address=self.webhook_bind_address,
            port=self.port,
            tls=self._tls(),
            registration=self._registration(process) if self.register_webhook else None,
            reloads=self.reload_cert or self.tls_cert_file is None,
        )

    def certificates(self, clock: Clock) -> AbstractContextManager[Certificates]:
        """Raises UsageError, and MachineError for files that cannot be read."""
        files = (self.tls_cert_file, self.tls_private_key, self.client_ca_file)
        certificate, key, authorities = files
        if certificate is None and key is None and authorities is None:
            service = f"{self.webhook_service}.{_namespace()}.svc"
            return self_made(clock, (service, *filter(None, (self.webhook_address,))))
        if certificate is None or key is None or authorities is None:
            raise UsageError("--tls-cert-file, --tls-private-key and --client-ca-file: give all three or none")
        for file in (certificate, key, authorities):
            if not os.access(file, os.R_OK):
                raise MachineError(f"{file} cannot be read", fix=("mount the certificates there",))
        return nullcontext(Files(certificate, key, authorities).read)

    def _registration(self, process: VpaProcessFlags) -> Registration:
        if self.register_by_url and not self.webhook_address:
            raise UsageError("--register-by-url: name the address with --webhook-address")
        labels = {}
        for label in filter(None, self.webhook_labels.split(",")):
            key, colon, value = label.partition(":")
            if not key or not colon:
                raise UsageError(f"--webhook-labels {label}: write KEY:VALUE")
            labels[key] = value
        url = f"https://{self.webhook_address}:{self.webhook_port or self.port}"
        return Registration(
            service=self.webhook_service,
            service_namespace=_namespace(),
            url=url if self.register_by_url else "",
            timeout=self.webhook_timeout_seconds,
            fails=self.webhook_failure_policy_fail,
            namespace=process.vpa_object_namespace,
            ignored=process.ignored,
            labels=labels,
        )

    def _tls(self) -> Tls:
        names = [name for name in self.tls_ciphers.replace(":", ",").split(",") if name]
        for name in names:
            if name not in CIPHERS and name not in CIPHERS.values():
                raise UsageError(f"--tls-ciphers {name}: there are {', '.join(CIPHERS)}")
        least = {"tls1_2": ssl.TLSVersion.TLSv1_2, "tls1_3": ssl.TLSVersion.TLSv1_3}[self.min_tls_version]
        return Tls(least, ":".join(CIPHERS.get(name, name) for name in names))


VpaAdmission: TypeAlias = Annotated[VpaAdmissionFlags | None, Parameter(name="*")]


def admission_controller(
    *,
    process: VpaProcess = None,
    flags: VpaAdmission = None,
    secure_port: Annotated[int, Parameter(help="Of health and metrics; 0 takes a free one.")] = 8944,
    log: Log = None,
) -> int:
    """Run the admission controller of the Vertical Pod Autoscaler: it sizes pods that are made (any cluster)."""

    process, flags, clock = process or VpaProcessFlags(), flags or VpaAdmissionFlags(), SystemClock()
    settings, webhook, certificates = flags.settings(process), flags.webhook(process), flags.certificates(clock)
    options = control_options(
        "vpa admission-controller",
        process,
        ElectionFlags(leader_elect=False),
        lease="",
        port=secure_port,
        healthy=lambda: True,
    )

    def loops(client_of: ClientOf, metrics: Metrics) -> Iterator[Loop]:
        return admission_loops(client_of, settings, webhook, certificates, clock, metrics)

    return run_process(options, loops, log or LogFlags())


def _namespace() -> str:
    return os.environ.get("NAMESPACE", "") or NAMESPACE
