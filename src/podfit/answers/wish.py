"""What the user wants: new CPU and memory for one container, for the pod as a whole, or what a manifest says.

    500m        the request; a limit keeps its proportion to it, so what was Guaranteed stays so
    500m:1      request and limit
    :1          the limit alone
"""

from collections.abc import Mapping

import msgspec

from podfit.api import codec
from podfit.api.core.containers import Container, ResourceRequirements
from podfit.api.core.pods import Pod
from podfit.core.quantity import Quantity

BEFORE = "podfit.dev/resized-from"
"""What a pod was before podfit resized it the first time."""
NOTHING = ResourceRequirements()
UNIT = Quantity.of(1).nano
MILLI = Quantity.of_milli(1).nano


class WishError(ValueError):
    """A wish that cannot be understood, or that fits no container of this pod."""


class Amount(msgspec.Struct, frozen=True):
    request: Quantity | None = None
    limit: Quantity | None = None


class Wish(msgspec.Struct, frozen=True):
    """`amounts` by resource for one container (or the pod), `containers` what a manifest says of each by name, `undo`
    what each pod was before.
    """

    amounts: Mapping[str, Amount] = msgspec.field(default_factory=dict)
    container: str = ""
    containers: Mapping[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    pod: ResourceRequirements | None = None
    undo: bool = False


class _Remembered(msgspec.Struct):
    containers: dict[str, ResourceRequirements]
    pod: ResourceRequirements | None = None


def remembered(pod: Pod) -> str:
    """The pod's resources for the annotation that --undo reads."""
    named = {each.name: each.resources for each in (*pod.spec.init_containers, *pod.spec.containers)}
    return codec.encode(_Remembered(named, pod.spec.resources)).decode()


def parse_amount(option: str, text: str) -> Amount:
    """Raises WishError that quotes the option."""
    request, colon, limit = text.partition(":")
    try:
        amount = Amount(Quantity.parse(request) if request else None, Quantity.parse(limit) if limit else None)
    except ValueError as error:
        raise WishError(f"{option} {text}: {error}; write 500m, 500m:1 (request:limit) or :1 (limit)") from error
    if amount == Amount() or (colon and not limit):
        raise WishError(f"{option} {text!r}: write 500m, 500m:1 (request:limit) or :1 (limit)")
    return amount


def from_template(pod: Pod) -> Wish:
    """What a manifest says of every container, and of the pod as a whole."""
    named = {each.name: each.resources for each in (*pod.spec.init_containers, *pod.spec.containers)}
    return Wish(containers=named, pod=pod.spec.resources)


def apply(wish: Wish, pod: Pod) -> Pod:
    """The pod as wished for. Raises WishError when it has no such container, or several and none was named."""
    if wish.undo:
        wish = _before(pod)
    if wish.containers or wish.pod is not None:
        return _with_manifest(wish, pod)
    name = wish.container or _only(pod)
    if not name:
        level = _changed(pod.spec.resources or NOTHING, wish.amounts)
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, resources=level))
    known = [each.name for each in (*pod.spec.init_containers, *pod.spec.containers)]
    if name not in known:
        raise WishError(f'pod {pod.metadata.name} has no container "{name}"; it has {", ".join(known)}')
    wanted = {
        each.name: _changed(each.resources, wish.amounts)
        for each in (*pod.spec.init_containers, *pod.spec.containers)
        if each.name == name
    }
    return _with_containers(pod, wanted)


def _before(pod: Pod) -> Wish:
    note = pod.metadata.annotations.get(BEFORE)
    if note is None:
        raise WishError(f"pod {pod.metadata.name} was not resized by podfit: it has no annotation {BEFORE}")
    try:
        before = codec.decode(note.encode(), _Remembered)
    except (msgspec.DecodeError, ValueError) as error:
        raise WishError(f"pod {pod.metadata.name}: annotation {BEFORE} cannot be read: {error}") from error
    return Wish(containers=before.containers, pod=before.pod)


def _only(pod: Pod) -> str:
    """The container that is meant when none is named: the only one, or none of them but the pod (empty)."""
    if pod.spec.resources is not None:
        return ""
    if len(pod.spec.containers) == 1:
        return pod.spec.containers[0].name
    names = ", ".join(each.name for each in pod.spec.containers)
    raise WishError(f"pod {pod.metadata.name} has several containers: name one of {names} with -c")


def _with_manifest(wish: Wish, pod: Pod) -> Pod:
    changed = _with_containers(pod, wish.containers)
    if wish.pod is None:
        return changed
    return msgspec.structs.replace(changed, spec=msgspec.structs.replace(changed.spec, resources=wish.pod))


def _with_containers(pod: Pod, wanted: Mapping[str, ResourceRequirements]) -> Pod:
    def carried(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            msgspec.structs.replace(each, resources=wanted.get(each.name, each.resources)) for each in containers
        )

    spec = msgspec.structs.replace(
        pod.spec, containers=carried(pod.spec.containers), init_containers=carried(pod.spec.init_containers))
    return msgspec.structs.replace(pod, spec=spec)


def _changed(resources: ResourceRequirements, amounts: Mapping[str, Amount]) -> ResourceRequirements:
    requests, limits = dict(resources.requests), dict(resources.limits)
    for name, amount in amounts.items():
        before, limit = requests.get(name), limits.get(name)
        if amount.request is not None:
            requests[name] = amount.request
            if limit is not None and amount.limit is None:
                limits[name] = _in_proportion(limit, before, amount.request)
        if amount.limit is not None:
            limits[name] = amount.limit
    return msgspec.structs.replace(resources, requests=requests, limits=limits)


def _in_proportion(limit: Quantity, before: Quantity | None, request: Quantity) -> Quantity:
    """Rounded up to a thousandth of a CPU or a byte, whichever the request is written in."""
    if not before:
        return max(limit, request)
    unit = MILLI if request.nano % UNIT or limit.nano % UNIT else UNIT
    return Quantity(-(-limit.nano * request.nano // (before.nano * unit)) * unit, request.format)

