"""Key pairs on disk, and the TLS contexts made from them."""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec

from podfit.core.options import Option


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its private key, PEM, in two files of mode 0600."""

    certificate_file: Annotated[
        Path, Option("Certificate to serve with.", flag="tls-cert-file", path="tlsCertFile", usual="one of its own")
    ]
    key_file: Annotated[Path, Option("Its key.", flag="tls-private-key-file", path="tlsPrivateKeyFile")]

    @property
    def certificate(self) -> bytes:
        return self.certificate_file.read_bytes()

    @property
    def key(self) -> bytes:
        return self.key_file.read_bytes()


def server_context(pair: KeyPair | None) -> ssl.SSLContext:
    """TLS for a server. Without a pair every handshake fails, until there is one to `show`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if pair is not None:
        context.load_cert_chain(pair.certificate_file, pair.key_file)
    return context


def ask_for_certificates(context: ssl.SSLContext, authorities: bytes) -> None:
    """Make a server ask clients who they are. A certificate is optional; one that none of these authorities (PEM)
    vouches for as a client's fails the handshake. An authority of the bundle need not be a root.
    """
    context.load_verify_locations(cadata=authorities.decode("ascii"))
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN


def client_context(
    *, authorities: bytes | None = None, certificate: bytes | None = None, key: bytes | None = None, verify: bool = True
) -> ssl.SSLContext:
    """TLS for a client: whom to trust (PEM; None for the machine's own bundle) and the certificate to show (PEM)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authorities is not None:
        context.load_verify_locations(cadata=authorities.decode("ascii"))
    else:
        context.load_default_certs()
    if certificate is not None and key is not None:
        show(context, certificate, key)
    return context


def show(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """From the next handshake on, show this certificate (PEM) to the other side. Raises OSError for what is no pair."""
    with _key_file(certificate.rstrip() + b"\n" + key) as path:
        context.load_cert_chain(path)


@contextmanager
def _key_file(content: bytes) -> Iterator[str]:
    """`ssl` reads a key only from a file: one in memory where there are such, else a short-lived one of mode 0600."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("podfit-key"), "wb", buffering=0) as memory:
            memory.write(content)
            yield f"/proc/self/fd/{memory.fileno()}"
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name
