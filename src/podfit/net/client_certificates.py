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


MOST_REMEMBERED = 1024


class Trust:
    """The authorities of a PEM bundle, and whom they vouch for as clients.

    `known` tells which certificates (DER) need no verifying, because the authority itself remembers handing them out.
    """

    def __init__(self, authorities: bytes, *, known: Callable[[bytes], bool] = lambda _: False) -> None:
        self._authorities = authorities
        self._known = known
        self._between: dict[bytes, tuple[bytes, ...]] = {}

    @cached_property
    def _policy(self) -> "PolicyBuilder":
        from cryptography import x509
        from cryptography.x509.verification import Criticality, ExtensionPolicy, PolicyBuilder, Store

        store = Store(x509.load_pem_x509_certificates(self._authorities))
        anything = ExtensionPolicy.permit_all()  # the web's profile asks for names, which clients have none of
        agnostic = Criticality.AGNOSTIC
        issuer = anything.require_present(x509.BasicConstraints, agnostic, None)
        issuer = issuer.may_be_present(x509.KeyUsage, agnostic, _for_signing)
        leaf = anything.may_be_present(x509.ExtendedKeyUsage, agnostic, _for_clients)
        return PolicyBuilder().store(store).extension_policies(ca_policy=issuer, ee_policy=leaf)

    def objection(self, der: bytes, between: tuple[bytes, ...] = ()) -> str:
        """Why this certificate (DER) is not good now; empty when it is signed, in its time and meant for clients.

        `between` are the authorities that the client has shown between its own certificate and one of ours. A session
        that is taken up again shows none, so those of certificates that were good are remembered.
        """
        if self._known(der):
            return ""
        from cryptography import x509
        from cryptography.x509.verification import VerificationError

        try:
            between = between or self._between.get(der, ())
            chain = [x509.load_der_x509_certificate(each) for each in between]
            self._policy.build_client_verifier().verify(x509.load_der_x509_certificate(der), chain)
        except (VerificationError, ValueError) as error:
            return str(error)
        if between:
            if len(self._between) >= MOST_REMEMBERED:
                self._between.clear()
            self._between[der] = between
        return ""

    def ask(self, context: ssl.SSLContext) -> bool:
        """Make a server ask for certificates of these authorities; whether it lets those of others through as well."""
        context.load_verify_locations(cadata=self._authorities.decode("ascii"))
        context.verify_mode = ssl.CERT_OPTIONAL
        return _let_through(context)


def shown(tls: ssl.SSLObject | None) -> tuple[bytes, ...]:
    """The certificates (DER) that the other side has shown, its own first; none when it showed none."""
    own = tls.getpeercert(binary_form=True) if tls is not None else None
    if own is None:
        return ()
    import _ssl

    # From 3.13 on the chain has a public name; before, only the object inside has it.
    chain = getattr(tls, "_sslobj").get_unverified_chain() or ()  # noqa: B009
    return own, *(each.public_bytes(_ssl.ENCODING_DER) for each in chain[1:])


def _for_clients(policy: object, leaf: object, usage: "x509.ExtendedKeyUsage | None") -> None:
    from cryptography.x509.oid import ExtendedKeyUsageOID

    good = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
    if usage is not None and good.isdisjoint(usage):
        raise ValueError("the certificate is not meant for clients")


def _for_signing(policy: object, issuer: object, usage: "x509.KeyUsage | None") -> None:
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("an authority's certificate is not meant for signing")


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
