"""Definitions, their rules and the objects under them; a webhook's conditions."""

from typing import Any

from support.attack_courses.course import MAPS, Course, Scene

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
PAIR = "self.all(a, self.all(b, a + b > 0))"


def declared(scene: Scene, spec: dict[str, Any], expected: int = 201) -> str:
    """Where objects of a new kind with this schema go; empty when it is refused."""
    group = f"{scene.name()}.io"
    properties = {"spec": spec, "status": {"type": "object"}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    names = {"plural": "foos", "kind": "Foo"}
    definition = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    scene.send("POST", DEFINITIONS, {"metadata": {"name": f"foos.{group}"}, "spec": definition}, {expected})
    if expected != 201:
        return ""
    path = f"/apis/{group}/v1/namespaces/default/foos"
    scene.until(lambda: scene.victim.ask("GET", path).status == 200, f"{group} is served")
    return path


def made(scene: Scene, path: str, expected: int, **spec: Any) -> None:
    """One object, if there may be one, and then neither it nor its definition."""
    group = path.split("/")[2]
    body = {"apiVersion": f"{group}/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": spec}
    scene.send("POST", path, body, {expected})
    scene.send("DELETE", f"{DEFINITIONS}/foos.{group}", None, {200})


def ruled(*rules: str, most: int | None = 300) -> dict[str, Any]:
    numbers: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
    numbers |= {"maxItems": most} if most else {}
    numbers["x-kubernetes-validations"] = [{"rule": rule} for rule in rules]
    return {"type": "object", "properties": {"l": numbers}}


def texts(scene: Scene) -> None:
    length = scene.chance.randint(100_001, 300_000)
    declared(scene, ruled(f"self.size() == {'1 + ' * (length // 4)}1"), 422)
    declared(scene, ruled("(" * scene.chance.randint(251, 5000) + "true" + ")" * 5000), 422)


def estimates(scene: Scene) -> None:
    depth = scene.chance.randint(3, 6)
    nested = "self.all(x, " * depth + "true" + ")" * depth
    declared(scene, ruled(nested, most=None), 422)


def estimates_of_all(scene: Scene) -> None:
    """Each rule may be, all of them may not."""
    declared(scene, ruled(*(f"{PAIR} || {number} > 0" for number in range(200)), most=800), 422)


def one_evaluation(scene: Scene) -> None:
    made(scene, declared(scene, ruled(PAIR, most=800)), 422, l=[1] * 800)


def all_evaluations(scene: Scene) -> None:
    rules = [f"{PAIR} || {number} > 0" for number in range(40)]
    made(scene, declared(scene, ruled(*rules, most=300)), 422, l=[1] * 300)


def conditions(scene: Scene) -> None:
    """The webhook would refuse; its conditions cost too much, so it is left out."""
    keys = {f"k{number}": "x" for number in range(scene.chance.randint(1500, 3000))}
    expression = "object.data.all(a, object.data.all(b, a != '' || b != ''))"
    webhook = {
        "name": "a.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
        "timeoutSeconds": 1,
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "matchConditions": [{"name": f"c{number}", "expression": expression} for number in range(5)],
    }
    name = scene.name()
    scene.send("POST", HOOKS, {"metadata": {"name": name}, "webhooks": [webhook]}, {201})
    scene.send("POST", MAPS, {"metadata": {"name": name}, "data": keys}, {201})
    scene.send("DELETE", f"{HOOKS}/{name}", None, {200})
    scene.send("DELETE", f"{MAPS}/{name}", None, {200})


def defaults(scene: Scene) -> None:
    item = {"type": "object", "properties": {"x": {"type": "string", "default": "d" * 100_000}}}
    path = declared(scene, {"type": "object", "properties": {"l": {"type": "array", "items": item}}})
    made(scene, path, 413, l=[{}] * scene.chance.randint(200, 3000))


def checks(scene: Scene) -> None:
    names = [f"n{number}" for number in range(20_000)]
    items = {"type": "string", "enum": names}
    path = declared(scene, {"type": "object", "properties": {"l": {"type": "array", "items": items}}})
    made(scene, path, 413, l=["x"] * 20_000)


def alternatives(scene: Scene) -> None:
    nested: dict[str, Any] = {"minimum": 5}
    for _ in range(scene.chance.randint(10, 25)):
        nested = {"allOf": [nested]}
    path = declared(scene, {"type": "object", "properties": {"l": {"type": "integer", **nested}}})
    made(scene, path, 422, l=1)


def multiples(scene: Scene) -> None:
    ends = ((1e-300, 1e300, 422), (1e300, 1e-300, 201), (1e-300, 2**63, 422), (3, 10**300, 201))
    multiple, value, status = scene.chance.choice(ends)
    number = {"type": "number", "multipleOf": multiple, "minimum": -1e308, "maximum": 1.7e308}
    made(scene, declared(scene, {"type": "object", "properties": {"l": number}}), status, l=value)


COURSES = (
    Course("texts of rules", ("text of an expression",), texts),
    Course("a costly rule", ("estimated cost of a rule",), estimates),
    Course("many costly rules", ("estimated cost of a schema's rules",), estimates_of_all),
    Course("a costly evaluation", ("one evaluation of a rule",), one_evaluation),
    Course("many costly evaluations", ("all evaluations for an object",), all_evaluations),
    Course("conditions of a webhook", ("one of a webhook's",), conditions),
    Course("defaults", ("defaults that one object",), defaults),
    Course("values and alternatives", ("checking one object",), checks),
    Course("nested alternatives", ("nested `allOf`",), alternatives),
    Course("ends of numbers", ("`multipleOf`",), multiples),
)
