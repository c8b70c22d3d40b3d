"""The cluster role aggregation controller: aggregated roles get the rules of the roles that they select.

An extension that labels its roles `rbac.authorization.k8s.io/aggregate-to-edit: "true"` thereby makes its kinds
something that editors may edit.
"""

from podfit.api.rbac.v1.types import ClusterRole
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.aggregated_roles import aggregated_rules, comparisons
from podfit.net.loop_turns import beside


class AggregationController(Controller[str]):
    def __init__(self, client: Client, *, informers: Informers, clock: Clock) -> None:
        self._client = client
        self._roles = informers.of(ClusterRole)
        super().__init__(clock, self._roles)
        self._roles.add_handler(add=self._changed, update=lambda _, new: self._changed(new), delete=self._changed)

    def _changed(self, _: ClusterRole) -> None:
        for role in self._roles.list():
            if role.aggregation_rule is not None:
                self.queue.add(role.metadata.name)

    async def reconcile(self, key: str) -> float | None:
        role = self._roles.get(key)
        if role is None or role.aggregation_rule is None:
            return None
        roles = self._roles.list()
        rules = await beside(comparisons(role, roles), aggregated_rules, role, roles)
        if rules == (role.rules or ()):
            return None
        at = {"resourceVersion": role.metadata.resource_version}
        try:
            await self._client.patch(ClusterRole, key, "", {"metadata": at, "rules": rules})
        except ApiError as error:
            if error.code not in (404, 409):  # gone, or seen again as it is now
                raise
        return None
