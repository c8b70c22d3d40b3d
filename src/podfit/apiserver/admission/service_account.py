"""ServiceAccount: a pod gets its account, and a volume with that account's token.

The token is a projected volume `kube-api-access-…` with the cluster's CA certificate and the name of the namespace
beside it, mounted where client libraries look. Whoever mounts something there, or wants no token, gets none.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.config.types import ServiceAccount
from podfit.api.core.v1.pods.containers import Container, VolumeMount
from podfit.api.core.v1.pods.static_pods import is_mirror
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.core.v1.pods.validation.alike import TOKEN_VOLUME
from podfit.api.core.v1.pods.volumes import (
    ConfigMapProjection,
    DownwardAPIProjection,
    DownwardAPIVolumeFile,
    KeyToPath,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)
from podfit.api.core.v1.references import ObjectFieldSelector
from podfit.apiserver.admission.chain import BasePlugin, PluginScope
from podfit.apiserver.context import Attributes
from podfit.apiserver.registry.naming import random_suffix
from podfit.core.errors import forbidden
from podfit.core.randomness import Random
from podfit.decide.node_rights.pods import mirror_refusal

DEFAULT_ACCOUNT = "default"
PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"
SECONDS = 3607  # an hour, and by the odd rest it is known that nobody chose it
CA_CONFIG_MAP = "kube-root-ca.crt"


class ServiceAccountAdmission(BasePlugin):
    scope = PluginScope(operations=("CREATE",), kinds=(Pod,), subresources=("",))

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        if is_mirror(obj):  # it shows what runs already, so it stays as it is
            _check_mirror(attributes, obj)
            return obj
        name = obj.spec.service_account_name or DEFAULT_ACCOUNT
        account = await self.context.find(ServiceAccount, name, attributes.namespace)
        if account is None:
            text = f'error looking up service account {attributes.namespace}/{name}: serviceaccount "{name}" not found'
            raise forbidden("pods", attributes.name, text)
        spec = replace(obj.spec, service_account_name=name, service_account=name)
        if account.image_pull_secrets and not spec.image_pull_secrets:
            spec = replace(spec, image_pull_secrets=account.image_pull_secrets)
        return replace(obj, spec=with_token(spec, self.context.random) if _wants_token(spec, account) else spec)

    async def validate(self, attributes: Attributes, obj: Any) -> None:
        if is_mirror(obj):
            _check_mirror(attributes, obj)


def _check_mirror(attributes: Attributes, pod: Pod) -> None:
    if refused := mirror_refusal(pod.spec):
        raise forbidden("pods", attributes.name, refused)


def _wants_token(spec: PodSpec, account: ServiceAccount) -> bool:
    """The pod's own word counts before its account's; without either it does."""
    for said in (spec.automount_service_account_token, account.automount_service_account_token):
        if said is not None:
            return said
    return True


def with_token(spec: PodSpec, random: Random) -> PodSpec:
    """The pod with a token in each container that has nothing mounted in its place; twice is as good as once."""
    known = next((volume.name for volume in spec.volumes if volume.name.startswith(TOKEN_VOLUME)), "")
    name = known or TOKEN_VOLUME + random_suffix(random)
    mount = VolumeMount(name=name, mount_path=PLACE, read_only=True)
    containers, inits = _mounting(spec.containers, mount), _mounting(spec.init_containers, mount)
    if (containers, inits) == (spec.containers, spec.init_containers):
        return spec
    volumes = spec.volumes if known else (*spec.volumes, Volume(name=name, projected=_source()))
    return replace(spec, containers=containers, init_containers=inits, volumes=volumes)


def _mounting(containers: Iterable[Container], mount: VolumeMount) -> tuple[Container, ...]:
    return tuple(
        [
            container
            if PLACE in [other.mount_path for other in container.volume_mounts]
            else replace(container, volume_mounts=(*container.volume_mounts, mount))
            for container in containers
        ]
    )


@cache
def _source() -> ProjectedVolumeSource:
    field = ObjectFieldSelector(api_version="v1", field_path="metadata.namespace")
    return ProjectedVolumeSource(
        default_mode=0o644,
        sources=(
            VolumeProjection(
                service_account_token=ServiceAccountTokenProjection(expiration_seconds=SECONDS, path="token")
            ),
            VolumeProjection(
                config_map=ConfigMapProjection(name=CA_CONFIG_MAP, items=(KeyToPath(key="ca.crt", path="ca.crt"),))
            ),
            VolumeProjection(
                downward_api=DownwardAPIProjection(items=(DownwardAPIVolumeFile(path="namespace", field_ref=field),))
            ),
        ),
    )
