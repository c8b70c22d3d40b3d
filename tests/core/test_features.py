"""Feature gates: defaults of 1.36, and what may not be set."""

import pytest

from podfit.core.features import KNOWN, FeatureGateError, FeatureGates


def test_defaults() -> None:
    gates = FeatureGates()
    assert gates["InPlacePodVerticalScaling"]
    assert gates["PodLevelResources"]
    assert not gates["MemoryQoS"]
    assert all(gates[name] is gate.default for name, gate in KNOWN.items())


def test_parsing() -> None:
    gates = FeatureGates.parse(" MemoryQoS=true , PLEGOnDemandRelist=False,")
    assert gates["MemoryQoS"]
    assert not gates["PLEGOnDemandRelist"]
    assert FeatureGates.parse("") == FeatureGates()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Nope=true", "unrecognized feature gate: Nope"),
        ("InPlacePodVerticalScaling=false", "to false, feature is locked to true"),
        ("MemoryQoS", "must read NAME=true or NAME=false"),
        ("MemoryQoS=yes", "must read NAME=true or NAME=false"),
        ("NodeDeclaredFeatures=false", "InPlacePodVerticalScalingInitContainers requires NodeDeclaredFeatures"),
        ("PodLevelResources=false,InPlacePodLevelResourcesVerticalScaling=true", "requires PodLevelResources"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(FeatureGateError, match=message):
        FeatureGates.parse(text)
