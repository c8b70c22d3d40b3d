"""Who a client certificate names."""

import hashlib
from functools import lru_cache

from podfit.net.wire import Identity

CREDENTIAL = "authentication.kubernetes.io/credential-id"


@lru_cache(maxsize=4096)
def certificate_identity(der: bytes) -> Identity | None:
    """Subject CN is the user and each O a group, as Kubernetes reads client certificates; None without a CN.

    Which certificate it was is told as the credential, by its digest.

    The signature is not looked at: the server has verified it. Remembered per certificate, because a client sends
    the same one with every request. Raises ValueError when `der` is not a certificate.
    """
    from cryptography import x509  # 60 ms, and only clients with certificates need it
    from cryptography.x509.oid import NameOID

    subject = x509.load_der_x509_certificate(der).subject
    names = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if not names or not names[0].value:
        return None
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    extra = {CREDENTIAL: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}
    return Identity(str(names[0].value), tuple(str(group.value) for group in groups), extra=extra)
