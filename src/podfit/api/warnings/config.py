"""Warnings about secrets: keys and certificates that no server could use."""

from collections.abc import Callable, Iterator
from typing import Any

from podfit.api.core.v1.config.types import Secret
from podfit.api.meta.base import Object

_BEGIN, _END, _DASHES = b"-----BEGIN ", b"-----END ", b"-----"


def of_secret(secret: Secret) -> Iterator[str]:
    """Of a pair for TLS: what keeps it from being read, in the words of Go's `tls.X509KeyPair`."""
    if secret.type == "kubernetes.io/tls":
        wrong = _certificates(labels_of(secret.data.get("tls.crt", b"")))
        wrong = wrong or _key(labels_of(secret.data.get("tls.key", b"")))
        if wrong:
            yield f"tls: {wrong}"


def _certificates(labels: list[str]) -> str:
    if "CERTIFICATE" in labels:
        return ""
    if not labels:
        return "failed to find any PEM data in certificate input"
    if len(labels) == 1 and labels[0].endswith("PRIVATE KEY"):
        text = "failed to find certificate PEM data in certificate input, but did find a private key; "
        return f"{text}PEM inputs may have been switched"
    text = 'failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks'
    return f"{text} of the following types: [{' '.join(labels)}]"


def _key(labels: list[str]) -> str:
    if any(label == "PRIVATE KEY" or label.endswith(" PRIVATE KEY") for label in labels):
        return ""
    if not labels:
        return "failed to find any PEM data in key input"
    if labels == ["CERTIFICATE"]:
        return "found a certificate rather than a key in the PEM for the private key"
    text = 'failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks'
    return f"{text} of the following types: [{' '.join(labels)}]"


def labels_of(pem: bytes) -> list[str]:
    """What the PEM blocks of a text say that they are; each begins on a line of its own and ends with its own end."""
    found: list[str] = []
    label = b""
    for line in pem.splitlines():
        text = line.strip()
        if text.startswith(_BEGIN) and text.endswith(_DASHES):
            label = text.removeprefix(_BEGIN).removesuffix(_DASHES)
        elif label and text == _END + label + _DASHES:
            found.append(label.decode(errors="replace"))
            label = b""
    return found


WARNINGS: dict[type[Object], Callable[[Any, Any], Iterator[str]]] = {Secret: lambda new, _: of_secret(new)}
