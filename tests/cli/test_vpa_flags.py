"""The flags of `podfit vpa`: upstream's names and defaults, and words for values that cannot be followed."""

import pytest

from podfit.cli import exits
from podfit.cli.app import run
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.flags import DEFAULT_FLAGS
from podfit.decide.autoscaling.gates import Gates
from podfit.process.config_file import read
from podfit.process.vpa.options import UpdaterOptions
from podfit.process.vpa.recommender import RecommenderOptions
from podfit.vpa.recommender.settings import RecommenderSettings
from podfit.vpa.updater.settings import UpdaterSettings


def test_without_flags_it_is_as_upstream() -> None:
    assert read(RecommenderOptions).recommender() == RecommenderSettings()
    assert RecommenderSettings().flags == DEFAULT_FLAGS
    assert read(UpdaterOptions).updater() == UpdaterSettings()


def test_what_is_said_counts() -> None:
    flags = {
        "recommender-name": "mine",
        "recommender-interval": "1m30s",
        "target-cpu-percentile": 0.8,
        "confidence-interval-memory": "12h",
        "container-recommendation-max-allowed-memory": "2Gi",
        "ignored-vpa-object-namespaces": "a,b",
        "feature-gates": "PerVPAConfig=true",
    }
    said = read(RecommenderOptions, flags).recommender()
    assert (said.name, said.interval, said.ignored) == ("mine", 90.0, frozenset(("a", "b")))
    assert (said.flags.estimator.cpu.target, said.flags.estimator.memory.confidence_interval) == (0.8, 43_200.0)
    assert said.flags.render.max_allowed_memory == Quantity.parse("2Gi")
    assert said.gates == Gates(per_vpa_config=True)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--recommender-interval", "soon"], "--recommender-interval: 'soon' is no duration, such as 15s"),
        (["--recommender-interval", "0s"], "--recommender-interval 0s: it has to be more than 0"),
        (["--target-cpu-percentile", "90"], "--target-cpu-percentile 90: it has to be more than 0 and at most 1"),
        (["--update-worker-count", "0"], "--update-worker-count 0: it has to be at least 1"),
        (["--oom-bump-up-ratio", "0.5"], "--oom-bump-up-ratio 0.5: it has to be at least 1"),
        (["--container-recommendation-max-allowed-cpu", "lots"], "--container-recommendation-max-allowed-cpu: "),
        (["--feature-gates", "InPlace"], "--feature-gates: 'InPlace': write NAME=true or NAME=false"),
        (["--feature-gates", "Fast=true"], "--feature-gates: unrecognized feature gate: Fast"),
        (["--api-port", "70000"], "--api-port 70000: it has to be -1, or a port"),
        (["--register-api-as", "10.0.0.7"], "--register-api-as: say where it is served with --api-port"),
        (["--api-port", "0", "--register-api-as", "here"], "--register-api-as here: it has to be an IP address"),
        (["--kube-api-burst", "0"], "--kube-api-burst 0: it has to be at least 1"),
        (["--vpa-object-namespace", "a", "--ignored-vpa-object-namespaces", "b"], "give one of them"),
    ],
)
def test_what_cannot_be_followed_is_refused(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["vpa", "recommender", *flags]) == exits.USAGE
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--tls-cert-file", "/x"], "--tls-cert-file, --tls-private-key and --client-ca-file: give all three or none"),
        (["--register-by-url"], "--register-by-url: name the address with --webhook-address"),
        (["--webhook-labels", "a"], "--webhook-labels: 'a': write KEY:VALUE"),
        (["--webhook-timeout-seconds", "31"], "--webhook-timeout-seconds 31: it has to be from 1 to 30"),
        (["--tls-ciphers", "ROT13"], "--tls-ciphers: 'ROT13': there are TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
        (["--max-allowed-cpu-boost", "lots"], "--max-allowed-cpu-boost: "),
        (["--status-lease-update-interval", "0s"], "it has to be more than 0"),
    ],
)
def test_what_the_admission_controller_cannot_follow(
    flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["vpa", "admission-controller", *flags]) == exits.USAGE
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--eviction-tolerance", "2"], "--eviction-tolerance 2: it has to be from 0 to 1"),
        (["--min-replicas", "0"], "--min-replicas 0: it has to be at least 1"),
        (["--eviction-rate-burst", "0"], "--eviction-rate-burst 0: it has to be at least 1"),
        (["--admission-controller-status-lease-timeout", "0s"], "it has to be more than 0"),
        (["--leader-elect-retry-period", "1m"], "leaseDuration has to be more than renewDeadline"),
    ],
)
def test_what_the_updater_cannot_follow(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["vpa", "updater", *flags]) == exits.USAGE
    assert said in capsys.readouterr().err
