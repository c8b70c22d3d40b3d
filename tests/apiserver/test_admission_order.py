"""The order of the admission plugins is the one that the documentation gives."""

import re
from pathlib import Path

from podfit.apiserver.admission.default import BUILT_IN

DOCS = Path(__file__).parents[2] / "docs" / "apiserver.md"
OURS = {  # where a class is not called as upstream's plugin
    "CertificateAdmission": "CertificateApproval", "ServiceAccountAdmission": "ServiceAccount",
    "PriorityAdmission": "Priority",
    "DefaultTolerations": "DefaultTolerationSeconds", "StorageInUseProtection": "StorageObjectInUseProtection",
    "RuntimeClassAdmission": "RuntimeClass", "NodeDeclaredFeatures": "NodeDeclaredFeatureValidator",
}  # fmt: skip


def test_plugins_run_in_the_order_of_the_documentation() -> None:
    section = DOCS.read_text().partition("## Admission\n")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `(\w+)`", section, re.MULTILINE)
    assert told == [OURS.get(plugin.__name__, plugin.__name__) for plugin in BUILT_IN]
