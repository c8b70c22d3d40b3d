"""The certificate authority that signed a client certificate, for a server with several client CAs."""

from cryptography import x509
from cryptography.exceptions import InvalidSignature

MOST_REMEMBERED = 1024


class Issuers:
    """The authorities of a PEM bundle. That a certificate is good now was for the handshake to say."""

    def __init__(self, bundle: bytes) -> None:
        self._authorities = x509.load_pem_x509_certificates(bundle) if bundle.strip() else []
        self._known: dict[bytes, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._authorities)

    def issued(self, der: bytes) -> bool:
        """Whether one of them signed it itself."""
        if der not in self._known:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[der] = any(_is_issued(der, authority) for authority in self._authorities)
        return self._known[der]


def _is_issued(der: bytes, authority: x509.Certificate) -> bool:
    try:
        x509.load_der_x509_certificate(der).verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
