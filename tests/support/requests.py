"""Certificate signing requests, as a client makes them."""

import base64
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
NODE_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
USAGES = ("digital signature", "client auth")


@cache
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def key_pem() -> bytes:
    return key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def request(user: str, *groups: str, dns: tuple[str, ...] = ()) -> bytes:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if dns:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in dns]), False)
    return builder.sign(key(), hashes.SHA256()).public_bytes(Encoding.PEM)


def body(name: str, pem: bytes, signer: str = NODE_CLIENT, usages: tuple[str, ...] = USAGES, **spec: Any) -> Any:
    asked = {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": list(usages), **spec}
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": asked,
    }


def certificate() -> bytes:
    """Somebody's, PEM."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(name, name, key().public_key(), 7, now, now + timedelta(days=1))
    return builder.sign(key(), hashes.SHA256()).public_bytes(Encoding.PEM)
