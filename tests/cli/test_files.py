"""Files that flags name: each mistake is one line that says what, where and what to do, and ends with 2.

Below it is where the options of the verb are explained.
"""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from podfit.cli import exits
from podfit.cli.app import run
from podfit.net.authority import Authority
from podfit.net.system import SystemClock
from podfit.process.certificates import serving

ETCD = ("--etcd-servers", "https://127.0.0.1:1")
CERTIFICATES = {
    "--client-ca-file": (),
    "--etcd-cafile": ETCD,
    "--etcd-certfile": (*ETCD, "--etcd-keyfile", "good.key"),
    "--tls-cert-file": ("--tls-private-key-file", "good.key"),
}
KEYS = {
    "--tls-private-key-file": ("--tls-cert-file", "good.crt"),
    "--etcd-keyfile": (*ETCD, "--etcd-certfile", "good.crt"),
    "--service-account-signing-key-file": (),
}
NO_FILE = {"missing": "cannot be read (no such file or directory)", "folder": "cannot be read (is a directory)"}
NO_PEM = {**NO_FILE, "empty": "is empty", "garbage": "is not PEM", "binary": "is not PEM"}
NO_CERTIFICATE = {
    **NO_PEM,
    "good.key": "holds no certificate but: PRIVATE KEY",
    "bad.crt": "holds a damaged certificate",
}
NO_KEY = {
    **NO_PEM,
    "good.crt": "holds no private key but: CERTIFICATE",
    "bad.key": "holds a damaged key",
    "locked.key": "is protected by a password",
}
NO_DOCUMENT = {
    **NO_FILE,
    "empty": "is not understood",
    "garbage": "is not understood",
    "binary": "is not understood",
    "good.key": "is not understood",
    "list": "is not understood",
}


def folder(path: Path) -> Path:
    """A file of each kind, good and bad."""
    pair = serving(Authority.load(path / "pki", clock=SystemClock()))
    key = ec.generate_private_key(ec.SECP256R1())
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    locked = serialization.BestAvailableEncryption(b"secret")
    contents = {
        "good.crt": pair.certificate_file.read_bytes(),
        "good.key": pair.key_file.read_bytes(),
        "other.key": key.private_bytes(pem, pkcs8, serialization.NoEncryption()),
        "locked.key": key.private_bytes(pem, pkcs8, locked),
        "p384.key": ec.generate_private_key(ec.SECP384R1()).private_bytes(pem, pkcs8, serialization.NoEncryption()),
        "bad.crt": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "bad.key": b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        "empty": b"",
        "garbage": b"neither: [this\nnor: that\n",
        "binary": bytes(range(128, 256)),
        "list": b"[1, 2]\n",
    }
    for name, content in contents.items():
        (path / name).write_bytes(content)
    (path / "folder").mkdir()
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("files"))


CASES = [
    *(
        ("apiserver", flag, file, said, beside)
        for flag, beside in CERTIFICATES.items()
        for file, said in NO_CERTIFICATE.items()
    ),
    *(("apiserver", flag, file, said, beside) for flag, beside in KEYS.items() for file, said in NO_KEY.items()),
    *(
        ("apiserver", flag, "other.key", "is not the key of the certificate in", KEYS[flag])
        for flag in ("--tls-private-key-file", "--etcd-keyfile")
    ),
    ("apiserver", "--service-account-signing-key-file", "p384.key", "holds a key of another kind", ()),
    *(
        (verb, "--encryption-provider-config", file, said, ())
        for verb in ("apiserver", "up")
        for file, said in NO_DOCUMENT.items()
    ),
    *(
        (verb, "--audit-policy-file", file, said, ("--audit-log-path", "log"))
        for verb in ("apiserver", "up")
        for file, said in NO_DOCUMENT.items()
    ),
    ("up", "--pod-manifest-path", "garbage", "is not a directory", ()),
]

PLACES = [
    ("--kubeconfig", "folder", "is a directory"),
    ("--kubeconfig", "garbage/config", "is not a directory"),
    ("--data", "garbage", "is not a directory"),
    ("--data", "garbage/below", "is not a directory"),
]


@pytest.mark.parametrize("verb", ["apiserver", "up"])
@pytest.mark.parametrize(("flag", "place", "said"), PLACES)
def test_a_place_where_nothing_can_be_written(
    verb: str, flag: str, place: str, said: str, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = {"--data": str(tmp_path / "data"), flag: str(files / place)}
    assert run([verb, "--port", "0", *(word for pair in flags.items() for word in pair)]) == exits.USAGE
    line, see = capsys.readouterr().err.splitlines()
    assert see == f"  see:  podfit {verb} --help"
    assert line.startswith(f"error: {flag}: {files}")
    assert said in line
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("file", ["folder", "garbage", "binary"])
def test_a_kubeconfig_that_is_none(file: str, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["top", "--kubeconfig", str(files / file)]) == exits.MACHINE
    said = capsys.readouterr().err
    assert said.startswith(f"error: the kubeconfig {files / file} ")
    assert "Traceback" not in said


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("file", "said"), [("/dev/zero", "not a regular file"), ("large", "larger than 8 mib")])
def test_a_kubeconfig_without_an_end(file: str, said: str, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (files / "large").open("wb") as large:
        large.truncate(1 << 33)
    assert run(["top", "--kubeconfig", str(files / file)]) == exits.MACHINE
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"error: the kubeconfig {files / file} cannot be read ({said})"
    assert second == "  correct it, or name another kubeconfig with --kubeconfig or KUBECONFIG"


@pytest.mark.parametrize(("verb", "flag", "file", "said", "beside"), CASES)
def test_a_file_that_is_not_what_it_should_be(
    verb: str,
    flag: str,
    file: str,
    said: str,
    beside: tuple[str, ...],
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(files)
    data = tmp_path / "data"
    assert run([verb, "--data", str(data), "--port", "0", flag, file, *beside]) == exits.USAGE
    line, see = capsys.readouterr().err.splitlines()
    assert see == f"  see:  podfit {verb} --help"
    assert line.startswith(f"error: {flag}: ")
    assert f"{file} {said}" in line
    assert "; " in line
    assert not data.exists()
