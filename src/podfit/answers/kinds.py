"""The kinds that answers ask a cluster for.

Named here once more, because the table of all kinds takes a tenth of a second to load, with the columns and rules of
each; `tests/answers/test_kinds.py` compares the two.
"""

from podfit.api.core.limits import LimitRange, ResourceQuota
from podfit.api.core.nodes import Node
from podfit.api.core.pods import Pod
from podfit.client.resource import known

PODS = known(Pod, "pods")
NODES = known(Node, "nodes", namespaced=False)
LIMIT_RANGES = known(LimitRange, "limitranges")
QUOTAS = known(ResourceQuota, "resourcequotas")
