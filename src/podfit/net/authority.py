"""The cluster's own certificate authority.

One authority signs everything and lives in a directory. Keys are EC P-256, because making an RSA key takes 15 to 65 ms
and an EC key none. What is on disk is used again while it is signed by this authority, names what is asked for and is
not near its end; anything else, a damaged file too, is issued anew; the authority itself only where the caller allows
it. `cryptography` takes 60 ms to import, so nothing
here imports it before it is used, and what it has once found good is remembered (`net.issued`).

    authority = Authority.load(Path("pki"), clock=clock)
    server = authority.server("apiserver", hosts=("127.0.0.1", "kubernetes"))
    admin = authority.client("admin", user="kubernetes-admin", groups=("system:masters",))
    context = server_context(server)
"""

import hashlib
import ssl
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

from podfit.core.clock import Clock
from podfit.net.certificates import RENEW_BEFORE, Damaged, Wanted, in_time, issue, named, read_pair, usable
from podfit.net.issued import Checked, Issued, digest_of
from podfit.net.tls import KeyPair

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    from podfit.net.certificates import Signer


class Authority:
    """Issues key pairs into its directory, as `<name>.crt` and `<name>.key`."""

    def __init__(self, pair: KeyPair, clock: Clock, issued: Issued) -> None:
        self.directory = pair.certificate_file.parent
        self.certificate = pair.certificate
        """PEM: what others have to trust."""
        self._pair_of_own = pair
        self._clock, self._issued = clock, issued
        self._clients: dict[bytes, Checked] = {}

    @classmethod
    def load(cls, directory: Path, *, clock: Clock, name: str = "podfit-ca", make: bool = True) -> Self:
        """The authority that lives in `directory`. Its certificate is renewed near its end; the key stays.

        One that is missing or damaged is made anew, or Damaged is raised where `make` is false: what it has issued
        would not be good any more.
        """
        issued, pair = Issued(directory), _files(directory, "ca")
        _settle(pair, Wanted(name, authority=True), clock, issued, issuer=None, make=make)
        return cls(pair, clock, issued)

    @cached_property
    def _signer(self) -> "Signer":
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(self._pair_of_own.key, None)
        return x509.load_pem_x509_certificate(self.certificate), cast("ec.EllipticCurvePrivateKey", key)

    def server(self, name: str, *, hosts: tuple[str, ...]) -> KeyPair:
        """A server certificate for DNS names and IP addresses."""
        return self._pair(name, Wanted(name, hosts=hosts))[0]

    def client(self, name: str, *, user: str, groups: tuple[str, ...] = ()) -> KeyPair:
        """A client certificate that makes its bearer `user`, a member of `groups`."""
        pair, checked = self._pair(name, Wanted(user, groups))
        shown = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pair.certificate.decode("ascii"))).digest()
        self._clients[shown] = checked
        return pair

    def ends(self) -> datetime:
        """When the authority's own certificate is over."""
        return self._signer[0].not_valid_after_utc

    def sign(self, request: bytes, usages: tuple[str, ...], begins: datetime, until: datetime) -> bytes:
        """A certificate (PEM) for who made this request (PKCS#10 in PEM). Whether it is to have one is not asked."""
        from podfit.net.requests import signed

        return signed(self._signer, request, usages, begins, until)

    def knows(self, der: bytes) -> bool:
        """Whether this is a client certificate (DER) that this authority has handed out and that is in its time."""
        checked = self._clients.get(hashlib.sha256(der).digest())
        return checked is not None and checked.begins <= self._clock.now().timestamp() < checked.ends

    def _pair(self, name: str, wanted: Wanted) -> tuple[KeyPair, Checked]:
        pair = _files(self.directory, name)
        return pair, _settle(pair, wanted, self._clock, self._issued, issuer=self)


def _files(directory: Path, name: str) -> KeyPair:
    return KeyPair(directory / f"{name}.crt", directory / f"{name}.key")


def _settle(
    pair: KeyPair, wanted: Wanted, clock: Clock, issued: Issued, *, issuer: Authority | None, make: bool = True
) -> Checked:
    """Have the pair that is wanted: what is there when it is good, else a new one."""
    name, meaning = pair.certificate_file.stem, repr(wanted)
    trusted = issuer.certificate if issuer else b""
    found = issued.find(name, _digest(pair, trusted), meaning)
    if found is not None and found.begins <= clock.now().timestamp() < found.ends - RENEW_BEFORE.total_seconds():
        return found
    if issuer is None:
        certificate = _own(pair, wanted, clock, make=make)
    else:
        signer = issuer._signer
        certificate = usable(pair, wanted, clock, signer) or issue(pair, wanted, clock, signer)
    checked = Checked(
        _digest(pair, trusted),
        meaning,
        certificate.not_valid_before_utc.timestamp(),
        certificate.not_valid_after_utc.timestamp(),
    )
    issued.add(name, checked)
    return checked


def _own(pair: KeyPair, wanted: Wanted, clock: Clock, *, make: bool) -> "x509.Certificate":
    """An authority's own certificate."""
    try:
        certificate, key = read_pair(pair, None)
        if not named(certificate, wanted):
            raise Damaged(pair.certificate_file, f"is not the authority {wanted.user}")
    except Damaged:
        if not make:
            raise
        return issue(pair, wanted, clock, None)
    return certificate if in_time(certificate, clock) else issue(pair, wanted, clock, None, key)


def _digest(pair: KeyPair, trusted: bytes) -> str:
    """Of what a check looks at; of a pair that is not there, none that was ever recorded."""
    try:
        return digest_of(trusted, pair.certificate, pair.key)
    except OSError:
        return ""
