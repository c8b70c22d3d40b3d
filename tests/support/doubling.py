"""What reads or compares what somebody else wrote, each with the worst that it can be given, in any size.

    SHAPES       by place (`module:function`, `module:Class.method`): what is done, of a size that is doubled
    ELSEWHERE    places that are asked by another test, or only about what the operator of the machine wrote: why

`places` finds all functions whose names say that they decode, parse, read or match. One that is in neither table fails
`tests/test_doubling.py`, so that a new decoder or matcher comes with what it is to be given.
"""

import ast
import asyncio
import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import yaml

import podfit
from podfit.api.apiextensions.v1.types import JSONSchemaProps
from podfit.api.batch.v1.types import Job
from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.nodes.types import Node, Taint
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.api.meta import codec
from podfit.api.meta.selector_text import parse_fields, parse_labels
from podfit.api.meta.selectors import requirements
from podfit.api.meta.v1.types import LabelSelector
from podfit.api.meta.validation import addresses
from podfit.api.rbac.v1.types import ClusterRole, PolicyRule
from podfit.api.structural import jsonpath
from podfit.api.structural.cel import check as cel_check
from podfit.api.structural.cel import parse as cel_parse
from podfit.api.structural.cel.syntax import ExpressionError
from podfit.api.structural.pruning import prune
from podfit.apiserver.authz import rbac
from podfit.apiserver.authz.question import Question
from podfit.apiserver.registry.patch import decoding, jsonpatch, mergepatch, strategic
from podfit.apiserver.request import documents, protobuf, yaml_documents
from podfit.apiserver.request.documents import LARGE, MOST_BUILT_IN, MOST_CUSTOM, MOST_OF_POD
from podfit.core import cron, durations, go_json, go_time, numbers, selectors, times
from podfit.core.errors import ApiError
from podfit.core.loop_slices import Allowance, TooLong
from podfit.core.quantity import Quantity
from podfit.decide.aggregated_roles import aggregated_rules, comparisons
from podfit.decide.limits import quota as quotas
from podfit.decide.placement import default_spread, node_filters
from podfit.decide.placement.terms import Term
from podfit.decide.pod.burst_ceiling import read_ranges
from podfit.decide.workload.job import indexes, policies
from podfit.decide.workload.services import pods as services
from podfit.kubelet.runtime import logs
from podfit.metrics import scraper as samples
from podfit.net import certificate_signing, x509
from podfit.net.loop_turns import beside
from support.shapes import Shape, Work
from support.shapes_of_claims import CLAIMS
from support.shapes_of_definitions import DEFINITIONS, wide
from support.shapes_of_room import ROOM
from support.shapes_of_strangers import STRANGERS
from support.turns import worst_ms

ROOT = Path(podfit.__file__).parent
NAMES = re.compile(r"(decode|parse|match|selects|tolerat|read)")
OUTSIDE = ("cli", "testing", "process", "answers", "actions")
"""What no server runs: it reads for whoever typed a command."""
MOST_BODY, MOST_QUERY = 3 << 20, 60 << 10
MOST_RULES = 5_000
"""Of a pod, about nodes and others: more are looked at in a thread (`scheduler/test_many_rules.py`)."""


def _of(function: Callable[..., object], made: Callable[[int], Any], name: str, most: int) -> Shape:
    def make(size: int) -> Work:
        given = made(size)
        return lambda: function(given)

    return Shape(name, most, make)


def texts(function: Callable[[str], object], most: int, *given: str) -> tuple[Shape, ...]:
    """Of texts that repeat the part behind `…`: "1…2" is 1222."""
    return tuple(_of(function, partial(_long, text), repr(text), most) for text in given)


def blobs(function: Callable[[bytes], object], most: int, *given: str) -> tuple[Shape, ...]:
    return texts(lambda text: function(text.encode()), most, *given)


def _long(text: str, size: int) -> str:
    start, _, rest = text.partition("…")
    again, _, end = rest.partition("…")
    return start + again * ((size - len(start) - len(end)) // len(again)) + end


def _pod(**spec: Any) -> Pod:
    given = {"metadata": {"name": "a", "namespace": "b"}, "spec": {"containers": [{"name": "c", "image": "x"}], **spec}}
    return codec.convert(given, Pod)


def _keys(size: int) -> dict[str, str]:
    return {f"k{number}": "v" for number in range(size)}


def _json_of(made: Callable[[int], Any]) -> Callable[[int], bytes]:
    return lambda size: json.dumps(made(size)).encode()


JSONS = (
    "[…[],…[]]",
    "[…1,…1]",
    '["…\\"…"]',
    '{"a":"…,…"}',
    '["…\\u0000…"]',
    '{"a":…[…',
    "[…1e5,…1]",
    "…9…",
    "-0.…0…1",
    "… …",
    '{…"a":1,…"b":1}',
    '{…"a" :1,…"b" :1}',
)


# ------------------------------------------------------------------ objects


def _node_affinity(size: int) -> Work:
    terms = [{"matchExpressions": [{"key": f"k{n}", "operator": "In", "values": ["x"]}]} for n in range(size)]
    wanted = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    pod, node = _pod(affinity=wanted), codec.convert({"metadata": {"name": "n", "labels": _keys(1000)}}, Node)
    return lambda: node_filters.matches_node(pod, node)


def _tolerations(size: int) -> Work:
    pod = _pod(tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(size)])
    taints = [Taint(key=f"t{n}", effect="NoSchedule") for n in range(10)]
    return lambda: [node_filters.tolerated(pod.spec.tolerations, taint) for taint in taints]


def _terms(size: int) -> Work:
    wanted = requirements(codec.convert({"matchLabels": _keys(size)}, LabelSelector))
    term = Term("zone", frozenset(("b",)), None, wanted)
    pod = codec.convert({"metadata": {"name": "a", "namespace": "b", "labels": _keys(size)}}, Pod)
    return lambda: term.matches(pod, {})


def _requirements(form: Callable[..., Any]) -> Callable[[int], Work]:
    def make(size: int) -> Work:
        labels = _keys(size)
        selector = form(selectors.Requirement(key, "In", (value,)) for key, value in labels.items())
        return lambda: selector.matches(labels)

    return make


def _field_terms(size: int) -> Work:
    selector = parse_fields(",".join(["metadata.name!=a"] * min(size, selectors.MOST_TERMS)))
    return lambda: selector.matches({"metadata.name": "b"})


def _covers(size: int) -> Work:
    rule = PolicyRule(verbs=("get",), api_groups=tuple(f"g{n}" for n in range(size)), resources=("pods",))
    question = Question("get", "", "pods", namespace="a", name="b")
    return lambda: [rbac.covers(rule, question) for _ in range(10)]


def _aggregated(size: int) -> Work:
    """An aggregation rule of many selectors; beyond `MANY` comparisons it is a thread that makes them."""
    selected = [{"matchLabels": {f"k{n}": "v"}} for n in range(size)]
    meta = {"metadata": {"name": "all"}, "aggregationRule": {"clusterRoleSelectors": selected}}
    role = codec.convert(meta, ClusterRole)
    roles = [codec.convert({"metadata": {"name": f"r{n}", "labels": {f"k{n}": "v"}}}, ClusterRole) for n in range(500)]

    async def beside_the_loop() -> None:
        await beside(comparisons(role, roles), aggregated_rules, role, roles)

    return beside_the_loop


def _failures(size: int) -> Work:
    rule = {"action": "Count", "onExitCodes": {"operator": "In", "values": list(range(1, size + 1))}}
    ended = [{"name": f"c{n}", "state": {"terminated": {"exitCode": size + n}}} for n in range(100)]
    job = codec.convert({"metadata": {"name": "a"}, "spec": {"podFailurePolicy": {"rules": [rule] * 20}}}, Job)
    pod = codec.convert({"metadata": {"name": "a"}, "status": {"containerStatuses": ended}}, Pod)
    return lambda: policies.match_failure(job, pod)


def _successes(size: int) -> Work:
    rules = [{"succeededIndexes": ",".join(map(str, range(0, 2 * size, 2))), "succeededCount": size}]
    job = codec.convert(
        {"metadata": {"name": "a"}, "spec": {"completions": 2 * size, "successPolicy": {"rules": rules}}}, Job
    )
    return lambda: policies.match_success(job, frozenset(range(1, size)))


def _quota(size: int) -> Work:
    quota = codec.convert({"metadata": {"name": "a"}, "spec": {"hard": dict.fromkeys(_keys(size), "1")}}, ResourceQuota)
    pod = _pod()
    return lambda: quotas.matches(quota, pod)


def _ranges(size: int) -> Work:
    sides = {"floor": {"cpu": "1"}, "ceiling": {"cpu": "2"}}
    text = json.dumps({f"c{number}": sides for number in range(size)}, separators=(",", ":"))
    return lambda: read_ranges(text)


def _service(size: int) -> Work:
    service = codec.convert({"metadata": {"name": "a"}, "spec": {"selector": _keys(size)}}, Service)
    meta = codec.convert({"metadata": {"name": "a", "labels": _keys(size)}}, Pod).metadata
    return lambda: services.selects(service, meta)


def _spread(size: int) -> Work:
    pod = codec.convert({"metadata": {"name": "a", "labels": _keys(size)}}, Pod)
    return lambda: default_spread.selects(_keys(size), pod)


def _json_patch(*operations: Any) -> Callable[[int], Work]:
    def make(size: int) -> Work:
        document = {"metadata": {"finalizers": ["a"] * min(size, 4000), "labels": _keys(min(size, 4000))}}
        patch = [operations[number % len(operations)] for number in range(size)]
        return lambda: jsonpatch.apply(document, patch)

    return make


def _merge_patch(size: int) -> Work:
    return lambda: mergepatch.apply({"data": _keys(size)}, {"data": dict.fromkeys(_keys(size))})


def _strategic(part: Callable[[int], Any], patch: Callable[[int], Any]) -> Callable[[int], Work]:
    def make(size: int) -> Work:
        before, after = {"spec": part(size)}, {"spec": patch(size)}
        return lambda: strategic.apply(before, after, Pod)

    return make


def _containers(size: int) -> Any:
    return {"containers": [{"name": f"c{n}", "image": "x"} for n in range(size // 3)]}


def _order(size: int) -> Any:
    return {"$setElementOrder/containers": [{"name": f"c{n}"} for n in reversed(range(size // 3))]}


def _pruned(size: int) -> Work:
    schema = codec.convert(wide(100), JSONSchemaProps)
    document: Any = {f"q{n}": {} for n in range(size)}
    return lambda: prune(document, schema)


def _walked(path: str) -> Callable[[int], Work]:
    """Through a document of deep lists."""

    def make(size: int) -> Work:
        document: Any = {}
        for _ in range(max(1, size // 80)):
            inner: object = [{"a": 1}]
            for _ in range(35):
                inner = {"a": [inner]}
            document[str(len(document))] = inner
        return lambda: jsonpath.find(document, path)

    return make


def _pem(size: int) -> bytes:
    return b"-----BEGIN CERTIFICATE REQUEST-----\n" + base64.b64encode(b"0" * (size * 3 // 4)) + b"\n-----END"


def _kubelet_metrics(size: int) -> str:
    line = 'container_cpu_usage_seconds_total{container="c",namespace="a",pod="p%d"} 1 1700000000000\n'
    return "".join(line % number for number in range(size // 80))


def _protobuf(size: int) -> bytes:
    return protobuf.MAGIC + b"\x78\0" * (size // 2)


def _yaml(made: Callable[[int], Any]) -> Callable[[int], bytes]:
    return lambda size: yaml.safe_dump(made(size)).encode()


# ------------------------------------------------------------------ the table

PATHS = ("..a", ".." * 4 + ".a", "....[*].a", "..[?(@..a==1)].a", ".." * 40 + ".a", "..[?(@..[?(@..a)])]")
CEL = (
    "…(…1",
    "a…+a…",
    "a….a…",
    "[…1,…1]",
    "'…\\x41…'",
    "…!…a",
    "a…[0]…",
    "{…1:1,…1:1}",
    "a…?a:a…",
    "… …a",
    "…9…",
    "a…&&a…",
)
SHAPES: Mapping[str, tuple[Shape, ...]] = {
    **CLAIMS,
    **DEFINITIONS,
    **ROOM,
    **STRANGERS,
    "api.core.v1.pods.validation.templates:matches": (Shape("labels", MOST_RULES, _terms),),
    "api.meta.codec:decode": (
        _of(lambda body: codec.decode(body, ConfigMap), _json_of(lambda n: {"data": _keys(n)}), "keys", MOST_BUILT_IN),
        _of(
            lambda body: codec.decode(body, Pod),
            _json_of(lambda n: {"spec": {"volumes": [{"name": "a", "emptyDir": {}}] * (n // 3)}}),
            "volumes",
            MOST_OF_POD,
        ),
    ),
    "api.meta.codec:decode_shared": (
        _of(
            lambda body: codec.decode_shared(body, ConfigMap),
            _json_of(lambda n: {"data": _keys(n)}),
            "keys",
            MOST_BUILT_IN,
        ),
    ),
    "core.durations:parse_duration": texts(durations.parse_duration, MOST_BODY, "…1h…", "…1…"),
    "api.meta.selector_text:parse_labels": texts(
        parse_labels,
        MOST_QUERY,
        "a in (…b,…b)",
        "…a,…b",
        "…!…a",
        "…(…",
        "a…=…b",
        "… …a",
        "a…a…",
        "a in (b…)…",
        "…a.…/b",
    ),
    "api.meta.selector_text:parse_fields": texts(
        parse_fields, MOST_QUERY, "…a=b,…a=b", "a=…\\…", "…=…", "…,…", "a…!=…"
    ),
    "api.meta.validation.addresses:parsed": texts(
        addresses.parsed, MOST_BODY, "…1…", "…1.…1", "…1:…1", "…:…", "::…0…1", "…０…"
    ),
    "api.structural.cel.parse:parsed": texts(cel_parse.parsed, 100_000, *CEL),
    "api.structural.cel.check:check": texts(lambda text: cel_check.check(text, {}), 100_000, *CEL),
    "api.structural.jsonpath:parse": texts(
        jsonpath.parse, MOST_BODY, "….a…", ".a…[0]…", ".a…[…", "…{…", ".a…\\.…", ".['…a…']"
    ),
    "api.structural.jsonpath:find": tuple(Shape(path, MOST_CUSTOM, _walked(path)) for path in PATHS),
    "apiserver.registry.patch.decoding:decoded": blobs(
        lambda body: decoding.decoded(body, prefix=""), MOST_BODY, *JSONS
    ),
    "apiserver.registry.patch.jsonpatch:apply": (
        Shape("tests", 10_000, _json_patch({"op": "test", "path": "/metadata/labels/k1", "value": "v"})),
        Shape("additions", 10_000, _json_patch({"op": "add", "path": "/metadata/finalizers/0", "value": "b"})),
        Shape("copies", 10_000, _json_patch({"op": "copy", "from": "/metadata/labels", "path": "/metadata/a"})),
        Shape("moves", 10_000, _json_patch({"op": "move", "from": "/metadata/labels", "path": "/metadata/labels"})),
        Shape("deep", 10_000, _json_patch({"op": "add", "path": "/a" * 90, "value": 1})),
    ),
    "apiserver.registry.patch.mergepatch:apply": (Shape("keys", MOST_BUILT_IN, _merge_patch),),
    "apiserver.registry.patch.strategic:apply": (
        Shape("containers", MOST_OF_POD, _strategic(_containers, _containers)),
        Shape("order", MOST_OF_POD, _strategic(_containers, _order)),
    ),
    "apiserver.request.documents:parse_json": blobs(documents.parse_json, MOST_BODY, *JSONS),
    "apiserver.request.protobuf.__init__:decode": (_of(protobuf.decode, _protobuf, "fields, in the loop", LARGE),),
    "apiserver.request.yaml_documents:parse_yaml_strictly": (
        *blobs(
            yaml_documents.parse_yaml_strictly,
            LARGE,
            "[…[],…]",
            "…[…",
            "…- …a",
            "a: …&a …b",
            "…{a: …",
            "a: 1…:59…",
            "…? …",
            "a: […*a,…]",
        ),
        _of(yaml_documents.parse_yaml_strictly, _yaml(lambda n: {"data": _keys(n // 8)}), "keys, in the loop", LARGE),
    ),
    "core.cron:parse": texts(
        cron.parse, MOST_BODY, "…*/1,…*", "…1-59,…1 * * * *", "@every …1h…", "…* …", "TZ=…a… * * * * *"
    ),
    "core.go_json:syntax_error": blobs(go_json.syntax_error, MOST_BODY, *JSONS, "…a…", '{…"a":…'),
    "core.go_time:in_utc": texts(
        lambda text: go_time.in_utc(text, go_time.SECONDS), MOST_BODY, "2020-01-01T00:00:00.…1…Z", "…1…", "2020-…-…"
    ),
    "core.numbers:parse_int": texts(numbers.parse_int, MOST_QUERY, "…9…", "-…0…1", "…_…", "…０…"),
    "core.quantity:Quantity.parse": texts(
        Quantity.parse, MOST_BODY, "…9…", "0.…0…1", "1e…9…", "1e-…9…", "…1…Ki", "-…0…", "…1.…", "1…m…"
    ),
    "core.selectors:from_map": (_of(selectors.from_map, _keys, "labels", MOST_BUILT_IN),),
    "core.selectors:Requirement.matches": (
        Shape(
            "values",
            MOST_BUILT_IN,
            lambda n: lambda: selectors.Requirement("a", "NotIn", tuple(_keys(n))).matches({"a": "b"}),
        ),
    ),
    "core.selectors:Matcher.matches": (Shape("requirements", MOST_BUILT_IN, _requirements(selectors.Matcher)),),
    "core.selectors:Selector.matches": (
        Shape("requirements", selectors.MOST_TERMS, _requirements(lambda given: selectors.Selector(tuple(given)))),
    ),
    "core.selectors:FieldSelector.matches": (Shape("terms", selectors.MOST_TERMS, _field_terms),),
    "core.times:parse_time": texts(times.parse_time, MOST_BODY, "2020-01-01T00:00:00.…1…Z", "…1…", "2020-01-01T…0…"),
    "decide.aggregated_roles:aggregated_rules": (Shape("selectors of 500 roles", 1000, _aggregated),),
    "decide.pod.burst_ceiling:read_ranges": (Shape("containers", 250, _ranges),),
    "decide.limits.quota:matches": (Shape("resources", MOST_BUILT_IN, _quota),),
    "decide.placement.default_spread:selects": (Shape("labels", MOST_RULES, _spread),),
    "decide.placement.node_filters:matches_node": (Shape("terms", MOST_RULES, _node_affinity),),
    "decide.placement.node_filters:tolerated": (Shape("tolerations", MOST_RULES // 10, _tolerations),),
    "decide.placement.terms:Term.matches": (Shape("requirements", MOST_RULES, _terms),),
    "decide.workload.job.indexes:parse": texts(
        lambda text: indexes.parse(text, 2**31), MOST_QUERY, "…1,…1", "…0-2147483647,…1", "…9…"
    ),
    "decide.workload.job.policies:match_failure": (Shape("exit codes", 255, _failures),),
    "decide.workload.job.policies:match_success": (Shape("indexes", MOST_BUILT_IN, _successes),),
    "decide.workload.services.pods:selects": (Shape("labels", MOST_BUILT_IN, _service),),
    "kubelet.runtime.logs:parse": blobs(logs.parse, 1 << 20, "2020 stdout F …a…", "… …"),
    "metrics.scraper:read": (
        Shape("samples", 2 << 20, lambda n: (lambda body: lambda: samples.read("n", body, 1.0))(_kubelet_metrics(n))),
        Shape(
            "labels",
            MOST_BODY,
            lambda n: (lambda body: lambda: samples.read("n", body, 1.0))("a{" + 'b="c",' * (n // 6)),
        ),
    ),
    "net.certificate_signing:read": (_of(certificate_signing.read, _pem, "PEM", MOST_BODY),),
    "net.x509:certificate_identity": blobs(x509.certificate_identity, 64 << 10, "…0…"),
    "api.structural.pruning:prune": (Shape("members", MOST_CUSTOM, _pruned),),
    "apiserver.authz.rbac:covers": (Shape("groups", MOST_BUILT_IN, _covers),),
}
OPERATOR = "read at the start, of what the operator of the machine wrote"
MEASURED = "sizes are measured by "
ELSEWHERE: Mapping[str, str] = {
    "api.events.v1.types:from_core": "a constant number of fields of a typed object",
    "api.meta.codec:_CustomDecoder.decode": "as codec:decode, of a custom kind: apiserver/test_document_bounds.py",
    "apiserver.extensions.webhooks.admission:matched": MEASURED + "e2e/test_attack_courses.py, conditions of a webhook",
    "apiserver.handlers.read:matching": MEASURED + "apiserver/test_list_turns.py",
    "apiserver.handlers.selection:Selection.matches": MEASURED + "apiserver/test_list_turns.py",
    "apiserver.registry.encryption:read_rules": OPERATOR,
    "apiserver.registry.stored:decoded": "codec:decode of a record, kept",
    "apiserver.registry.stored:decoded_once": "codec:decode of a record, not kept",
    "apiserver.request.bodies:read_object": MEASURED + "apiserver/test_document_bounds.py, e2e/test_bounds.py",
    "apiserver.request.bodies:read_options": "as read_object, of options",
    "apiserver.request.protobuf.wire:read": MEASURED + "apiserver/test_protobuf_bounds.py",
    "autoscaler.kwok:read_groups": OPERATOR,
    "client.kubeconfig:parsed": OPERATOR,
    "client.kubeconfig:read_document": OPERATOR,
    "client.watch_events:decoded": "codec:decode of an answer",
    "controllers.served_kinds:Served.decoded_as": "codec:decode of an object that the API server has taken",
    "core.features:FeatureGates.parse": OPERATOR,
    "decide.autoscaling.checkpoints:read": MEASURED + "vpa/test_vpa_hostile.py",
    "decide.autoscaling.horizontal.passing:reads_metrics": "once through the metrics of an object that was taken",
    "decide.managers.cpu:parse": OPERATOR,
    "decide.node.pressure:parse": OPERATOR,
    "decide.pod.resolver:parse": "the node's own resolv.conf",
    "dns.wire:parse": "one name of at most 255 bytes: dns/test_wire.py",
    "dns.library:read_reply": "at most 16 KiB: dns/test_wire.py",
    "decide.node_rights.references:readable_by_node": "node_authorizer: apiserver/test_node_authorizer_memory.py",
    "decide.placement.node_filters:tolerates": "one toleration and one taint",
    "decide.placement.pod_affinity:matches_all": MEASURED + "scheduler/test_many_rules.py",
    "decide.placement.pod_affinity:matching": MEASURED + "scheduler/test_many_rules.py",
    "decide.placement.spread:matching": MEASURED + "scheduler/test_many_rules.py",
    "decide.workload.daemon.nodes:tolerations": "one pass over a pod's tolerations",
    "kubelet.cgroup.files:read": "a file of the kernel",
    "kubelet.cgroup.files:read_int": "a file of the kernel",
    "kubelet.checkpoints.file:read": "the kubelet's own file, at its start",
    "kubelet.managers.config:read_reserved_cpus": OPERATOR,
    "kubelet.managers.config:read_reserved_memory": OPERATOR,
    "kubelet.pods.runtime_facts:read_message": MEASURED + "kubelet/server/test_planted.py",
    "kubelet.static.manifests:read": OPERATOR,
    "net.certificate_requests:read_pair": "a file of the process itself",
    "net.certificates:read_pair": OPERATOR,
    "net.certificates:read_key": OPERATOR,
    "net.files:read_given": OPERATOR,
    "net.http_syntax:parse_error": "an error of the HTTP parser: net/test_http_server.py",
    "net.http_client:_Guarded.feed_data": MEASURED + "tests/apiserver/test_spoofed_backends.py",
    "store.sqlite.sums:read": "at the start, of the server's own file",
    "vpa.history.own.journal:read_journal": "by processes of their own, at most 64 MiB of what a recorder wrote",
    "vpa.history.prometheus:read_history": MEASURED + "vpa/test_vpa_hostile.py",
}


def places() -> Iterator[str]:
    """Functions and methods of the package that decode, parse, read or match, by their names."""
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if module.split(".")[0] not in OUTSIDE:
            for node in ast.parse(path.read_text()).body:
                yield from _named(module, node)


def _named(module: str, node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.ClassDef):
        methods = [method for method in node.body if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)]
        yield from (f"{module}:{node.name}.{method.name}" for method in methods if _says(method.name, of_class=True))
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _says(node.name):
        yield f"{module}:{node.name}"


def _says(name: str, *, of_class: bool = False) -> bool:
    words = (
        "decode|parse|match|selects|feed" if of_class else "decode|parse|match|selects|tolerat|from_core|from_map|read"
    )
    return re.fullmatch(rf"({words})(d|s|es|ed|ing|able|ions)?(_.*)?", name) is not None


REFUSALS = (ApiError, ValueError, TooLong, ExpressionError, samples.TooManySamples)


async def stall_ms(work: Work) -> float:
    """The longest turn of the loop in CPU, what the loop's allowance does not cover left out: that goes on in a
    thread. A refusal is as good as an answer."""

    async def done() -> None:
        with suppress(*REFUSALS), Allowance():
            made = work()
            if asyncio.iscoroutine(made):
                await made

    return await worst_ms(done)


def sizes(most: int) -> Iterator[int]:
    """Doubled up to the most that a request may bring, which is the last."""
    size = 64
    while size < most:
        yield size
        size *= 2
    yield most
