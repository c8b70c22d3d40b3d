"""Feature gates of the Vertical Pod Autoscaler, which are not those of Kubernetes; all are off unless named."""

from collections.abc import Mapping
from typing import Annotated, TypeAlias

import msgspec

from podfit.core.options import Option, Unit


class Gates(
    msgspec.Struct,
    frozen=True,
    rename={"cpu_startup_boost": "CPUStartupBoost", "in_place": "InPlace", "per_vpa_config": "PerVPAConfig"},
):
    cpu_startup_boost: bool = False
    in_place: bool = False
    per_vpa_config: bool = False

    @staticmethod
    def of(named: Mapping[str, bool]) -> "Gates":
        """The gates by upstream's names. ValueError for one that there is not."""
        known = {field.encode_name: field.name for field in msgspec.structs.fields(Gates)}
        for name in named:
            if name not in known:
                raise ValueError(f"unrecognized feature gate: {name} (known: {', '.join(sorted(known))})")
        return Gates(**{known[name]: on for name, on in named.items()})


NO_GATES = Gates()


def _read(text: str) -> Gates:
    """Raises ValueError for a gate that there is not, or what is neither true nor false."""
    named: dict[str, bool] = {}
    for gate in filter(None, text.split(",")):
        name, _, value = gate.partition("=")
        if value not in ("true", "false"):
            raise ValueError(f"{gate!r}: write NAME=true or NAME=false")
        named[name] = value == "true"
    return Gates.of(named)


VpaGates: TypeAlias = Annotated[
    Gates,
    Option(
        f"Of {', '.join(sorted(field.encode_name for field in msgspec.structs.fields(Gates)))}.",
        flag="feature-gates",
        unit=Unit(name="NAME=true,OTHER=false", read=_read),
        usual="none",
    ),
]
