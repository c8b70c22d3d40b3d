"""`HistoryOptions`: where the usage of the past comes from. Any server that speaks PromQL will do, or podfit's own."""

import os
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from podfit.core.clock import Clock
from podfit.core.options import DURATION, POSITIVE, Option, Part
from podfit.process.errors import UsageError
from podfit.vpa.history.prometheus import HistorySettings
from podfit.vpa.history.promql import Login, PromQL

PROMETHEUS, CHECKPOINT, OWN = "prometheus", "checkpoint", "history"


class HistoryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Upstream's names and defaults."""

    storage: Annotated[str, Option("prometheus, history (--history-dir), or checkpoint.")] = CHECKPOINT
    address: Annotated[str, Option("Where it is.", flag="prometheus-address")] = "http://prometheus.monitoring.svc"
    insecure: Annotated[bool, Option("Do not check its certificate.", flag="prometheus-insecure")] = False
    timeout: Annotated[
        float, Option("For a query.", flag="prometheus-query-timeout", unit=DURATION, bound=POSITIVE)
    ] = 300.0
    token: Annotated[str, Option("Goes before user and password.", flag="prometheus-bearer-token")] = ""
    token_file: Annotated[Path | None, Option("Read before each query.", flag="prometheus-bearer-token-file")] = None
    username: Annotated[str, Option(usual="PROMETHEUS_USERNAME of the environment")] = ""
    password: Annotated[str, Option(usual="PROMETHEUS_PASSWORD of the environment")] = ""
    asked: Annotated[HistorySettings, Part()] = HistorySettings()

    def check(self) -> None:
        """Raises UsageError."""
        if self.storage not in ("", PROMETHEUS, CHECKPOINT, OWN):
            raise UsageError(f"--storage {self.storage}: it has to be {PROMETHEUS}, {OWN} or {CHECKPOINT}")
        parts = urlsplit(self.address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"--prometheus-address {self.address}: write http://HOST:PORT")
        if self.token and self.token_file:
            raise UsageError("--prometheus-bearer-token and --prometheus-bearer-token-file: give one of them")

    @property
    def wanted(self) -> bool:
        """Whether the history is that of a Prometheus server."""
        return self.storage == PROMETHEUS

    @property
    def own(self) -> bool:
        """Whether the history is that in podfit's own files."""
        return self.storage == OWN

    def settings(self, namespace: str) -> HistorySettings:
        return replace(self.asked, namespace=namespace)

    def server(self, clock: Clock) -> PromQL:
        return PromQL(self.address, clock, login=self._login(), insecure=self.insecure, timeout=self.timeout)

    def _login(self) -> Login:
        token, file = self.token, self.token_file
        if file is not None:
            return Login(token=lambda: file.read_text().strip())
        if token:
            return Login(token=lambda: token)
        return Login(
            user=self.username or os.environ.get("PROMETHEUS_USERNAME", ""),
            password=self.password or os.environ.get("PROMETHEUS_PASSWORD", ""),
        )
