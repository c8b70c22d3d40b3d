"""Client certificates are asked for in the handshake and judged after it.

OpenSSL ends the handshake of a client whose certificate no known authority has signed, so the client sees a broken
connection where an API server owes it a 401 that it can read. Python's `ssl` knows only that strictness; OpenSSL itself
has a callback that lets the handshake go on, set here through the pointer that an `SSLContext` holds. The client has
still proven that it has the key. Whether an authority vouches for the certificate is then for `Trust` to say, for every
certificate, whoever let it through. Where OpenSSL cannot be reached (a Python that carries it statically) the handshake
stays strict: the same clients are refused, less clearly.
"""

import ctypes
import ssl
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.x509.verification import PolicyBuilder

_SSL_VERIFY_PEER = 1
_go_on = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(lambda verified, chain: 1)


class Trust:
    """The authorities of a PEM bundle, and whom they vouch for as clients.

    `known` tells which certificates (DER) need no verifying, because the authority itself remembers handing them out.
    """

    def __init__(self, authorities: bytes, *, known: Callable[[bytes], bool] = lambda _: False) -> None:
        self._authorities = authorities
        self._known = known

    @cached_property
    def _policy(self) -> "PolicyBuilder":
        from cryptography import x509
        from cryptography.x509.verification import Criticality, ExtensionPolicy, PolicyBuilder, Store

        store = Store(x509.load_pem_x509_certificates(self._authorities))
        anything = ExtensionPolicy.permit_all()  # the web's profile asks for names, which clients have none of
        agnostic = Criticality.AGNOSTIC
        issuer = anything.require_present(x509.BasicConstraints, agnostic, None)
        leaf = anything.may_be_present(x509.ExtendedKeyUsage, agnostic, _for_clients)
        return PolicyBuilder().store(store).extension_policies(ca_policy=issuer, ee_policy=leaf)

    def objection(self, der: bytes) -> str:
        """Why this certificate (DER) is not good now; empty when it is signed, in its time and meant for clients."""
        if self._known(der):
            return ""
        from cryptography import x509
        from cryptography.x509.verification import VerificationError

        try:
            self._policy.build_client_verifier().verify(x509.load_der_x509_certificate(der), [])
        except (VerificationError, ValueError) as error:
            return str(error)
        return ""


    def ask(self, context: ssl.SSLContext) -> bool:
        """Make a server ask for certificates of these authorities; whether it lets those of others through as well."""
        context.load_verify_locations(cadata=self._authorities.decode("ascii"))
        context.verify_mode = ssl.CERT_OPTIONAL
        return _let_through(context)


def _for_clients(policy: object, leaf: object, usage: "x509.ExtendedKeyUsage | None") -> None:
    from cryptography.x509.oid import ExtendedKeyUsageOID

    good = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
    if usage is not None and good.isdisjoint(usage):
        raise ValueError("the certificate is not meant for clients")


def _let_through(context: ssl.SSLContext) -> bool:
    try:
        import _ssl

        library = ctypes.CDLL(_ssl.__file__)  # finds what the module is linked with
        set_verify, get_mode = library.SSL_CTX_set_verify, library.SSL_CTX_get_verify_mode
    except (ImportError, AttributeError, OSError):
        return False
    pointer = ctypes.c_void_p.from_address(id(context) + object.__basicsize__)
    set_verify.argtypes, set_verify.restype = [ctypes.c_void_p, ctypes.c_int, type(_go_on)], None
    get_mode.argtypes, get_mode.restype = [ctypes.c_void_p], ctypes.c_int
    if get_mode(pointer) != _SSL_VERIFY_PEER:
        return False
    set_verify(pointer, _SSL_VERIFY_PEER, _go_on)
    return True
