"""The rows of `kubectl get hpa`, as kubectl printed them of a real API server's tables."""

import re

from podfit.api.autoscaling.v2.columns import AUTOSCALER, autoscaler_row
from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.meta import codec
from support.golden import Case, parametrize

NOW = "2000-01-01T00:00:00Z"
SEVERAL_SPACES = re.compile(r"\s{2,}")


def wanted(case: Case) -> bool:
    """What prints one object as a table; `describe` and `autoscale` print what kubectl itself makes."""
    return case["in"]["args"][:2] == ["get", "hpa"] and bool(case["in"].get("object"))


@parametrize("hpa/kubectl.json*", wanted)
def test_hpa_table(case: Case) -> None:
    obj = case["in"]["object"]
    obj = obj | {"metadata": {name: value for name, value in obj["metadata"].items() if value is not None}}
    row = autoscaler_row(codec.convert(obj, HorizontalPodAutoscaler), NOW)
    head, line = (SEVERAL_SPACES.split(text.strip()) for text in case["out"]["stdout"].splitlines()[:2])
    assert [column.name.upper() for column in AUTOSCALER] == head
    assert [" ".join(str(cell).split()) for cell in row[:-1]] == line[:-1]
