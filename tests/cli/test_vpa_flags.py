"""The flags of `podfit vpa`: upstream's names and defaults, and words for values that cannot be followed."""

import pytest

from podfit.cli import exits
from podfit.cli.app import run
from podfit.cli.vpa_common import VpaProcessFlags
from podfit.cli.vpa_recommender import VpaRecommenderFlags
from podfit.cli.vpa_updater import VpaUpdaterFlags
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.flags import DEFAULT_FLAGS
from podfit.decide.autoscaling.gates import Gates
from podfit.vpa.recommender.recommender import RecommenderSettings
from podfit.vpa.updater.updater import UpdaterSettings as UpdaterSettings


def test_without_flags_it_is_as_upstream() -> None:
    assert VpaRecommenderFlags().settings(VpaProcessFlags()) == RecommenderSettings()
    assert RecommenderSettings().flags == DEFAULT_FLAGS
    assert VpaUpdaterFlags().settings(VpaProcessFlags()) == UpdaterSettings()


def test_what_is_said_counts() -> None:
    said = VpaRecommenderFlags(
        recommender_name="mine",
        recommender_interval="1m30s",
        target_cpu_percentile=0.8,
        confidence_interval_memory="12h",
        container_recommendation_max_allowed_memory="2Gi",
    ).settings(VpaProcessFlags(ignored_vpa_object_namespaces="a,b", feature_gates="PerVPAConfig=true"))
    assert (said.name, said.interval, said.ignored) == ("mine", 90.0, frozenset(("a", "b")))
    assert (said.flags.estimator.cpu.target, said.flags.estimator.memory.confidence_interval) == (0.8, 43_200.0)
    assert said.flags.render.max_allowed_memory == Quantity.parse("2Gi")
    assert said.gates == Gates(per_vpa_config=True)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--recommender-interval", "soon"], "--recommender-interval: 'soon' is no duration, such as 15s"),
        (["--recommender-interval", "0s"], "--recommender-interval: it has to be more than 0"),
        (["--target-cpu-percentile", "90"], "--target-cpu-percentile 90: it has to be more than 0 and at most 1"),
        (["--update-worker-count", "0"], "--update-worker-count 0: it has to be at least 1"),
        (["--oom-bump-up-ratio", "0.5"], "--oom-bump-up-ratio 0.5: it has to be at least 1"),
        (["--container-recommendation-max-allowed-cpu", "lots"], "--container-recommendation-max-allowed-cpu lots: "),
        (["--feature-gates", "InPlace"], "--feature-gates InPlace: write NAME=true or NAME=false"),
        (["--feature-gates", "Fast=true"], "--feature-gates: unrecognized feature gate: Fast"),
        (["--kube-api-burst", "0"], "--kube-api-burst at least 1"),
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
        (["--webhook-labels", "a"], "--webhook-labels a: write KEY:VALUE"),
        (["--webhook-timeout-seconds", "31"], "--webhook-timeout-seconds 31: it has to be from 1 to 30"),
        (["--tls-ciphers", "ROT13"], "--tls-ciphers ROT13: there are TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
        (["--max-allowed-cpu-boost", "lots"], "--max-allowed-cpu-boost lots: "),
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
        (["--leader-elect-retry-period", "1m"], "--leader-elect-retry-period < --leader-elect-renew-deadline"),
    ],
)
def test_what_the_updater_cannot_follow(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["vpa", "updater", *flags]) == exits.USAGE
    assert said in capsys.readouterr().err
