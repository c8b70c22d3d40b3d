"""The path of every write: steps as data, each of a stage of `decide.write_stages`, run one after the other.

    create     decode  default  (track  prepare  mutate  prepare  validate  admit  store)
    change     decode  (find  default  mutate  prepare  validate  admit  track  store)
    delete     decode  (find  mutate  validate  admit  store)

What is in brackets is done again when someone else was quicker. Each handler has a tuple of steps; what its steps do
for a kind and a subresource, the strategy of the kind supplies. For a subresource with an `order` of its own, that says
which step comes when: so `decide.resize.checks.RESIZE_CHECKS` is what a resize runs. Quotas, allocations and the object
are one transaction, the step `STORE`.

A refusal carries all that the client was warned of by then.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import msgspec

from podfit.api.defaults import apply_defaults
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.admission.chain import AdmissionChain
from podfit.apiserver.context import Attributes, Context
from podfit.apiserver.duplicate_owners import ADMITTED, with_owners_once
from podfit.apiserver.handlers.allocations import allocated, may_allocate
from podfit.apiserver.handlers.options import dry_run
from podfit.apiserver.handlers.patching import Make
from podfit.apiserver.handlers.write_attempts import is_large, until_unchanged, yield_turn
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.apply.managed import Entries
from podfit.apiserver.registry.stored import Stored
from podfit.apiserver.registry.strategies.strategy import Strategy
from podfit.apiserver.registry.strategies.table import strategy_of
from podfit.apiserver.request.bodies import read_object
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import ApiError
from podfit.decide.write_stages import Stage
from podfit.net.wire import Identity, Request, Response
from podfit.store.protocol import Companion, Record


class Write(msgspec.Struct, kw_only=True):
    """A write on its way. Each step reads what the ones before it left, and leaves `obj` as the next one is to see it.

    `sent` is what the body says, `repeated` the same where its spec is known and has its defaults, `old` what was
    stored in `record`, `asked` what the client wants of the stored object before the strategy keeps what may change.
    `entries` are the managers of the fields where the request settles them. The write ends with the step that gives an
    `answer`.
    """

    context: Context
    chain: AdmissionChain
    request_info: RequestInfo
    request: Request
    identity: Identity
    info: ResourceInfo
    operation: str  # CREATE, UPDATE, DELETE
    strategy: Strategy
    large: bool  # as sent or as stored: others have their turn between its steps
    may_create: Callable[[], Awaitable[None]] | None = None
    sent: Any = None
    repeated: Any = None
    make: Make | None = None
    obj: Any = None
    record: Record | None = None
    old: Any = None
    asked: Any = None
    entries: Entries | None = None
    warnings: list[str] = []
    attributes: Attributes | None = None
    answer: Response | None = None

    @staticmethod
    def of(
        operation: str,
        context: Context,
        chain: AdmissionChain,
        request_info: RequestInfo,
        request: Request,
        identity: Identity,
    ) -> "Write":
        info = request_info.info
        assert info is not None
        return Write(
            context=context,
            chain=chain,
            request_info=request_info,
            request=request,
            identity=identity,
            info=info,
            operation=operation,
            strategy=strategy_of(info.type),
            large=is_large(request),
        )

    @property
    def objects(self) -> Stored[Any]:
        return Stored(self.context.store, self.info)

    @property
    def about(self) -> Attributes:
        """What admission is told of it; since `identify`."""
        assert self.attributes is not None
        return self.attributes

    @property
    def found(self) -> Record:
        """What the write is to change; since `find`."""
        assert self.record is not None
        return self.record

    def said(self) -> list[str]:
        """Warnings for the client: of the request, then of admission and of the kind's rules."""
        return self.warnings if self.attributes is None else [*self.warnings, *self.attributes.reinvocations.warnings]

    def identify(self, *, name: str, dry: bool | None = None, generated: bool = False, subresource: str = "") -> None:
        """Say who writes what, for admission."""
        self.attributes = Attributes(
            operation=self.operation,
            info=self.info,
            subresource=subresource,
            namespace=self.request_info.namespace,
            name=name,
            identity=self.identity,
            dry_run=dry_run(self.request) if dry is None else dry,
            old=self.old,
            url_name=self.request_info.name,
            generated=generated,
        )


class Step(msgspec.Struct, frozen=True):
    """What is done for a stage: at once, or, if `run` gives something to await, in its own time."""

    stage: Stage
    run: Callable[[Write], Awaitable[None] | None]


Steps: TypeAlias = tuple[Step, ...]


async def carried_out(write: Write, steps: Steps) -> Response:
    """The answer of the step that ends the write. Raises what refuses it, with the warnings for the client."""
    try:
        await run(write, steps)
    except ApiError as error:
        error.warnings = write.said()
        raise
    assert write.answer is not None, "the last step answers"
    return write.answer


async def run(write: Write, steps: Steps) -> None:
    """The steps up to the answer. Between those of a large write others have their turn."""
    for step in steps:
        if (waiting := step.run(write)) is not None:
            await waiting
        if write.answer is not None:
            return
        if write.large:
            await yield_turn()


def again(*steps: Step) -> Step:
    """These steps as one, begun anew on the new state when someone else was quicker."""
    return Step(Stage.STORE, lambda write: until_unchanged(partial(run, write, steps)))


def in_order(steps: Steps, order: Sequence[Stage]) -> Steps:
    """The steps with those of the stages that `order` names put into it; others stay where they are. A stage without a
    step here, such as the right to write at all, is seen to elsewhere."""
    named = iter([step for stage in order for step in steps if step.stage is stage])
    return tuple(next(named) if step.stage in order else step for step in steps)


# ---------------------------------------------------------------- steps that several writes have


def from_body(write: Write) -> None:
    write.sent, write.warnings = read_object(write.request, write.info, legacy=write.context.legacy)


async def find(write: Write) -> None:
    """What is stored. Raises 404."""
    write.record = await write.objects.record(write.request_info.namespace, write.request_info.name)
    write.old, write.large = stored.decoded(write.info, write.record), is_large(write.request, write.record)


def default(write: Write) -> None:
    write.obj = apply_defaults(write.obj, write.context.gates, write.old)


async def mutate(write: Write) -> None:
    write.obj = await write.chain.mutate(write.about, write.obj)


async def mutate_object(write: Write) -> None:
    """As `mutate`, of what has owners: whatever plugins and webhooks name twice counts once."""
    mutated = await write.chain.mutate(write.about, write.obj)
    write.obj, repeated = with_owners_once(mutated, ADMITTED)
    write.about.reinvocations.warnings += repeated


async def admit(write: Write) -> None:
    await write.chain.validate(write.about, write.obj)


Saved: TypeAlias = Callable[[Write, Object, Sequence[Companion]], Awaitable[Response]]
"""Writes an object and its companions; answers."""


async def store(write: Write, saved: Saved) -> None:
    """Charge quotas, take what the object needs of the cluster's own, and have it `saved`: all or nothing."""

    async def charged(along: Sequence[Companion]) -> Response:
        if not may_allocate(write.obj, write.old):
            return await saved(write, write.obj, along)
        async with allocated(write.context, write.obj, write.old, dry=write.about.dry_run) as complete:
            return await saved(write, complete, along)

    write.answer = await write.chain.charge_and_write(write.about, write.obj, charged)


DECODE = Step(Stage.DECODE, from_body)
FIND = Step(Stage.DECODE, find)
DEFAULT = Step(Stage.DEFAULT, default)
MUTATE = Step(Stage.MUTATE, mutate)
MUTATE_OBJECT = Step(Stage.MUTATE, mutate_object)
ADMIT = Step(Stage.ADMIT, admit)
