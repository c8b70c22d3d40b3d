"""Checks the files that flags name, before anything starts.

A mistake in one is a mistake of usage: one line says which flag and file, what is wrong, and what belongs there. Else
it would be found by whatever reads the file first, in the words of OpenSSL, or by a client that is turned away.
"""

import contextlib
import os
import re
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import Certificate

from podfit.client.kubeconfig import KubeconfigError, read_document
from podfit.net.files import misread, read_given
from podfit.net.tls import KeyPair
from podfit.process.errors import MachineError, UsageError
from podfit.store.etcd.options import EtcdOptions
from podfit.store.protocol import StoreError

_LABEL = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----")
_CERTIFICATE, _KEY = "a certificate in PEM", "a private key in PEM"
_P256 = "an EC key on P-256 (openssl ecparam -name prime256v1 -genkey -noout -out FILE)"


def check_client_ca(path: Path) -> None:
    """Raises UsageError, as all of these."""
    _certificates("--client-ca-file", path)


def check_serving(pair: "KeyPair") -> None:
    _check_pair("--tls-cert-file", pair.certificate_file, "--tls-private-key-file", pair.key_file)


def check_etcd(options: "EtcdOptions") -> None:
    try:
        options.check()
    except StoreError as error:
        raise UsageError(f"--etcd-servers: {error}") from None
    if options.ca_file:
        _certificates("--etcd-cafile", options.ca_file)
    if options.cert_file and options.key_file:
        _check_pair("--etcd-certfile", options.cert_file, "--etcd-keyfile", options.key_file)


def check_signing_key(path: Path) -> None:
    """Tokens are signed with ES256, which takes one kind of key."""
    flag = "--service-account-signing-key-file"
    key = _private_key(flag, path, _P256)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise _wrong(flag, path, "holds a key of another kind", _P256)


def check_manifests(path: Path) -> None:
    """A directory that is not there yet is no mistake: static pods may come later."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"--pod-manifest-path: {path} is not a directory; name the one that holds the manifests")


def check_data(path: Path) -> None:
    """Raises MachineError for one that may not be written."""
    if found := _in_the_way(path):
        raise UsageError(f"--data: {found} is not a directory; name one that is there or can be made")
    if why := _unwritable(path):
        raise MachineError(f"--data: {path} cannot be written ({why})", fix=("choose another directory with --data",))


def check_kubeconfig(path: Path) -> None:
    if path.is_dir():
        raise UsageError(f"--kubeconfig: {path} is a directory; name the file to write")
    if found := _in_the_way(path.parent):
        raise UsageError(f"--kubeconfig: {found} is not a directory; name a file that can be written")
    if why := _unwritable(Path(os.path.realpath(path)).parent):
        raise MachineError(f"--kubeconfig: {path} cannot be written ({why})", fix=("name another file",))
    _check_mergeable(path)


def check_own_kubeconfig(path: Path) -> None:
    """The user's own, to which the context podfit is added: by way of a neighbour, so the directory is written to."""
    target = path.resolve()
    if found := _in_the_way(target.parent):
        raise UsageError(f"KUBECONFIG: {found} is not a directory; write a file of its own with --kubeconfig FILE")
    if why := _unwritable(target.parent):
        raise MachineError(
            f"the context podfit cannot be added to {path}: {target.parent} cannot be written ({why})",
            fix=("write a kubeconfig of its own:  podfit up --kubeconfig FILE",),
        )
    _check_mergeable(path)


def _check_mergeable(path: Path) -> None:
    """A context can only be added to what is understood. MachineError for a damaged file, which is left as it is."""
    try:
        read_document(path)
    except KubeconfigError as error:
        raise MachineError(
            f"{error}; the context podfit cannot be added to it, and it is left as it is",
            fix=("correct it, or name another file with --kubeconfig",),
        ) from error


def _in_the_way(directory: Path) -> Path | None:
    """What stands where this directory or one around it would be."""
    nearest = _nearest(directory)
    return None if nearest.is_dir() else nearest


def _unwritable(directory: Path) -> str:
    """Why nothing can be made in this directory, or in the one around it that is there; empty when it can."""
    nearest = _nearest(directory)
    if os.access(nearest, os.W_OK | os.X_OK):
        return ""
    if os.statvfs(nearest).f_flag & os.ST_RDONLY:
        return f"{nearest} is on a read-only file system"
    return f"you have no permission to write to {nearest}"


def _nearest(path: Path) -> Path:
    """The path, or what of it is there."""
    for place in (path, *path.parents):
        with contextlib.suppress(PermissionError):
            if place.exists():
                return place
    return path


def _check_pair(certificate_flag: str, certificate: Path, key_flag: str, key: Path) -> None:
    shown, *_ = _certificates(certificate_flag, certificate)
    if _private_key(key_flag, key, _KEY).public_key() != shown.public_key():
        wrong = f"is not the key of the certificate in {certificate}"
        raise UsageError(f"{key_flag}: {key} {wrong}; name the two that belong together")


def _certificates(flag: str, path: Path) -> "list[Certificate]":
    content, labels = _pem(flag, path, _CERTIFICATE)
    if "CERTIFICATE" not in labels:
        raise _wrong(flag, path, f"holds no certificate but: {', '.join(labels)}", _CERTIFICATE)
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise _wrong(flag, path, "holds a damaged certificate", _CERTIFICATE) from None


def _private_key(flag: str, path: Path, wanted: str) -> "PrivateKeyTypes":
    content, labels = _pem(flag, path, wanted)
    if not any(label.endswith("PRIVATE KEY") for label in labels):
        raise _wrong(flag, path, f"holds no private key but: {', '.join(labels)}", wanted)
    try:
        return load_pem_private_key(content, password=None)
    except TypeError:
        raise _wrong(flag, path, "is protected by a password", f"{wanted}, without one") from None
    except (ValueError, UnsupportedAlgorithm):
        raise _wrong(flag, path, "holds a damaged key", wanted) from None


def _pem(flag: str, path: Path, wanted: str) -> tuple[bytes, list[str]]:
    """The content, and the kinds of its PEM blocks."""
    try:
        content = read_given(path)
    except OSError as error:
        raise _wrong(flag, path, misread(error), wanted) from None
    labels = [label.decode() for label in _LABEL.findall(content)]
    if not labels:
        raise _wrong(flag, path, "is not PEM" if content.strip() else "is empty", wanted)
    return content, labels


def _wrong(flag: str, path: Path, what: str, wanted: str) -> UsageError:
    return UsageError(f"{flag}: {path} {what}; it has to hold {wanted}")
