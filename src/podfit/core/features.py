"""Feature gates under upstream's names, with the defaults of 1.36."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec


class Gate(msgspec.Struct, frozen=True):
    default: bool
    stage: str  # ALPHA, BETA or GA
    locked: bool = False
    requires: tuple[str, ...] = ()


_IPPVS = "InPlacePodVerticalScaling"
KNOWN: Mapping[str, Gate] = MappingProxyType(
    {
        _IPPVS: Gate(True, "GA", locked=True),
        "InPlacePodVerticalScalingInitContainers": Gate(True, "BETA", requires=(_IPPVS, "NodeDeclaredFeatures")),
        "InPlacePodLevelResourcesVerticalScaling": Gate(
            True, "BETA", requires=(_IPPVS, "PodLevelResources", "NodeDeclaredFeatures")
        ),
        "PodLevelResources": Gate(True, "BETA"),
        "NodeDeclaredFeatures": Gate(True, "BETA"),
        "ExtendWebSocketsToKubelet": Gate(True, "BETA"),
        "InPlacePodVerticalScalingExclusiveCPUs": Gate(False, "ALPHA", requires=(_IPPVS,)),
        "InPlacePodVerticalScalingExclusiveMemory": Gate(False, "ALPHA", requires=(_IPPVS,)),
        "PodLevelResourceManagers": Gate(False, "ALPHA", requires=("PodLevelResources",)),
        "PodObservedGenerationTracking": Gate(True, "GA", locked=True),
        "PLEGOnDemandRelist": Gate(True, "BETA"),
        "CPUCFSQuotaPeriod": Gate(True, "GA", locked=True),
        "MaxUnavailableStatefulSet": Gate(False, "BETA"),
        "MemoryQoS": Gate(False, "ALPHA"),
        "DisableCPUQuotaWithExclusiveCPUs": Gate(True, "BETA"),
        "HPAScaleToZero": Gate(False, "ALPHA"),
    }
)


class FeatureGateError(ValueError):
    """An unknown gate, a locked one set otherwise, or one without what it requires; the text is for the user."""


class FeatureGates(msgspec.Struct, frozen=True):
    """The gates in force. `FeatureGates()` has every default; `gates["PodLevelResources"]` asks for one."""

    overrides: Mapping[str, bool] = {}

    def __post_init__(self) -> None:
        for name, wanted in self.overrides.items():
            gate = KNOWN.get(name)
            if gate is None:
                raise FeatureGateError(f"unrecognized feature gate: {name} (known: {', '.join(sorted(KNOWN))})")
            if gate.locked and wanted != gate.default:
                raise FeatureGateError(
                    f"cannot set feature gate {name} to {str(wanted).lower()}, feature is locked to "
                    f"{str(gate.default).lower()}"
                )
        for name in KNOWN if self.overrides else ():
            lacking = [other for other in KNOWN[name].requires if self[name] and not self[other]]
            if lacking:
                raise FeatureGateError(f"feature gate {name} requires {', '.join(lacking)} to be true")

    def __getitem__(self, name: str) -> bool:
        return self.overrides.get(name, KNOWN[name].default)

    @staticmethod
    def parse(text: str) -> "FeatureGates":
        """Read `NAME=true,OTHER=false`; FeatureGateError says which part is wrong."""
        overrides: dict[str, bool] = {}
        for item in filter(None, (part.strip() for part in text.split(","))):
            name, equals, value = item.partition("=")
            if not equals or value.lower() not in ("true", "false"):
                raise FeatureGateError(f"feature gate {item!r} must read NAME=true or NAME=false")
            overrides[name.strip()] = value.lower() == "true"
        return FeatureGates(overrides)


DEFAULT_GATES = FeatureGates()
