"""CEL rules: what they see of a value, what they may call, what is refused when a definition is made."""

from typing import Any

import pytest

from podfit.api import codec
from podfit.api.apiextensions import JSONSchemaProps
from podfit.api.structural.cel.check import of_self, problem
from podfit.api.structural.cel.evaluate import RuleError, evaluate
from podfit.api.structural.rules import rule_errors
from podfit.api.validation.schemas import schema_errors

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}
PROPERTIES: dict[str, Any] = {
    "a": NUMBER, "f": {"type": "number"}, "s": TEXT, "l": {"type": "array", "items": NUMBER},
    "o": {"type": "array", "items": {"type": "object", "properties": {"x": NUMBER, "namespace": TEXT}}},
    "m": {"type": "object", "additionalProperties": TEXT}, "t": {"type": "string", "format": "date-time"},
    "e": {"type": "string", "format": "duration"}, "ios": {"x-kubernetes-int-or-string": True}, "b-c": TEXT,
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}, "n": {"type": "string", "nullable": True},
}  # fmt: skip
VALUE: dict[str, Any] = {
    "a": 1, "f": 2, "s": "abc", "l": [1, 2, 3], "o": [{"x": 1, "namespace": "q"}], "m": {"k": "y"}, "e": "90m",
    "t": "2020-01-01T00:00:00Z", "ios": 5, "b-c": "q", "set": ["a", "b"], "n": None, "undeclared": 1,
}  # fmt: skip


def schema(**more: Any) -> JSONSchemaProps:
    return codec.convert({"type": "object", "properties": PROPERTIES, **more}, JSONSchemaProps)


HOLD = [
    "self.a == 1 && self.a > 0.5 && self.f == 2.0", "has(self.a) && !has(self.o[0].x) || true",
    "self.l.all(i, i > 0) && self.l.exists(i, i == 3) && self.l.exists_one(i, i == 2)",
    "self.l.map(i, i * 2) == [2, 4, 6] && self.l.filter(i, i > 1).size() == 2",
    "self.l.isSorted() && self.l.sum() == 6 && self.l.min() == 1 && self.l.max() == 3 && self.l.indexOf(2) == 1",
    "sets.contains(self.l, [1]) && sets.equivalent([1, 2], [2, 1]) && !sets.intersects([1], [2])",
    "self.set == ['b', 'a']", "self.b__dash__c == 'q'", "self.o.exists(e, e.__namespace__ == 'q')", "self.n == null",
    "quantity('1Gi').isGreaterThan(quantity('1Mi')) && quantity('100m') < quantity('1') && !isQuantity('x')",
    "quantity('1').add(quantity('500m')).compareTo(quantity('1500m')) == 0 && quantity('5').asInteger() == 5",
    "self.s.split('b').size() == 2 && self.s.upperAscii() == 'ABC' && self.s.substring(1) == 'bc'",
    "self.s.matches('^a.c$') && self.s.find('b.') == 'bc' && 'aXbX'.findAll('X').size() == 2",
    "self.s.startsWith('a') && self.s.endsWith('c') && self.s.contains('b') && ' x '.trim() == 'x'",
    "isIP('::1') && ip('1.2.3.4').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.1.1') && !isCIDR('x')",
    "url('https://a.b:80/c?d=e').getHostname() == 'a.b'",
    "url('https://a.b/c').getEscapedPath() == '/c' && url('/x').getScheme() == '' && !isURL('x y')",
    "url('https://a.b:80/c?d=e&d=f').getQuery() == {'d': ['e', 'f']} && url('http://a:1').getHost() == 'a:1'",
    "self.t < timestamp('2021-01-01T00:00:00Z') && self.t.getFullYear() == 2020 && self.e == duration('1h30m')",
    "type(self.ios) == int ? self.ios > 4 : true", "self.m.all(k, self.m[k] == 'y') && 'k' in self.m && has(self.m.k)",
    "self.a >= oldSelf.a", "string(self.a) == '1' && int('5') == 5 && ['a', 'b'].join('-') == 'a-b'",
]  # fmt: skip


@pytest.mark.parametrize("text", HOLD)
def test_rules_that_hold(text: str) -> None:
    assert problem(text, of_self(schema(), root=False, optional=False)) == ""
    assert evaluate(text, VALUE, (VALUE,), schema(), root=False) is True


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("self.undeclared == 1", "undefined field 'undeclared'"), ("self.o.all(e, f == 1)", "reference to 'f'"),
        ("self.frobnicate()", "this server has no such function"), ("cel.bind(x, 1, x) == 1", "undeclared reference"),
        ("self.?a.orValue(1) == 1", "optional syntax"), ("self.l.map(i, i > 1, i) == []", "the macro 'map' with 3"),
        ("self.l.all(i, v, v > 0)", "the macro 'all' with 3"), ("self.a ==", "Syntax error"),
        ("self.s.startsWith()", "no matching overload"), ("oldSelf.hasValue()", "optional values"),
        ("(" * 2000 + "true" + ")" * 2000, "nested too deeply"),
        ("has(self)", "invalid argument to has() macro"), ("sets.union([1], [2]) == []", "this server has no such"),
    ],
)  # fmt: skip
def test_what_cannot_be_evaluated_is_refused_by_name(text: str, why: str) -> None:
    assert why in problem(text, of_self(schema(), root=False, optional=False))


@pytest.mark.parametrize(("text", "why"), [("self.l[7] == 1", "invalid_argument"), ("self.s", "unexpected result"),
                                           ("1 / (self.a - 1) == 1", "divide by zero")])  # fmt: skip
def test_a_rule_without_a_verdict_refuses(text: str, why: str) -> None:
    with pytest.raises(RuleError, match=why):
        evaluate(text, VALUE, None, schema(), root=False)


def errors(new: Any, old: Any, *rules: dict[str, Any], **properties: Any) -> list[str]:
    inner = schema(properties=PROPERTIES | properties, **{"x-kubernetes-validations": list(rules)})
    whole = JSONSchemaProps(type="object", properties={"spec": inner})
    before = None if old is None else {"spec": old}
    return [f"{each.field}: {each.body}" for each in rule_errors({"spec": new}, before, whole)]


def test_messages_reasons_and_places() -> None:
    rule = {"rule": "self.a > 1"}
    assert errors({"a": 1}, None, rule) == ['spec: Invalid value: {"a":1}: failed rule: self.a > 1']
    placed = rule | {"message": "too few", "reason": "FieldValueForbidden", "fieldPath": ".a"}
    assert errors({"a": 1}, None, placed) == ["spec.a: Forbidden: too few"]
    said = rule | {"message": "plain", "messageExpression": "'a is ' + string(self.a)"}
    assert errors({"a": 1}, None, said) == ['spec: Invalid value: {"a":1}: a is 1']
    assert errors({"a": 1}, None, said | {"messageExpression": "self.s"})[0].endswith("plain")
    assert "no such key: s evaluating rule: failed rule" in errors({"a": 1}, None, {"rule": "self.s == 'x'"})[0]


def test_rules_about_changes() -> None:
    fixed = {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is fixed"}]}
    assert errors({"s": "x"}, None, s=fixed) == []
    assert errors({"s": "x"}, {"s": "y"}, s=fixed) == ['spec.s: Invalid value: "x": is fixed']
    once = {"rule": "!oldSelf.hasValue() || oldSelf.value().a <= self.a", "optionalOldSelf": True}
    assert errors({"a": 1}, None, once) == []
    assert errors({"a": 1}, {"a": 1}, once) == []
    assert len(errors({"a": 0}, {"a": 1}, once)) == 1


def test_what_did_not_change_may_stay_wrong() -> None:
    rule = {"rule": "self.a > 1"}
    assert errors({"a": 0}, {"a": 0}, rule) == []
    assert len(errors({"a": 1}, {"a": 0}, rule)) == 1


def test_items_of_keyed_lists_are_compared_with_their_former_selves() -> None:
    item = {"type": "object", "required": ["x"], "properties": {"x": NUMBER, "v": NUMBER},
            "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "shrinks"}]}  # fmt: skip
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["x"]}
    new, old = [{"x": 2, "v": 1}, {"x": 1, "v": 1}], [{"x": 1, "v": 1}, {"x": 2, "v": 5}]
    assert errors({"k": new}, {"k": old}, k=keyed) == ['spec.k[0]: Invalid value: {"x":2,"v":1}: shrinks']
    atomic = codec.convert({"type": "object", "properties": {"k": {"type": "array", "items": item}}}, JSONSchemaProps)
    assert ["uncorrelatable" in str(each) for each in schema_errors(atomic, "s")] == [True]
