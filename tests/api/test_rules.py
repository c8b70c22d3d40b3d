"""CEL rules: what they see of a value, what they may call, what is refused when a definition is made."""

from typing import Any

import pytest

from podfit.api.apiextensions.v1.schema_validation import schema_errors
from podfit.api.apiextensions.v1.types import JSONSchemaProps
from podfit.api.meta import codec
from podfit.api.structural.cel.check import Checked, check
from podfit.api.structural.cel.evaluate import Outcome, Program
from podfit.api.structural.cel.types import Declared, declared
from podfit.api.structural.cel.values import typed_value
from podfit.api.structural.rules import rule_errors
from support.turns import cpu_ms

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}
PROPERTIES: dict[str, Any] = {
    "a": NUMBER,
    "f": {"type": "number"},
    "s": TEXT,
    "l": {"type": "array", "items": NUMBER},
    "o": {"type": "array", "items": {"type": "object", "properties": {"x": NUMBER, "namespace": TEXT}}},
    "m": {"type": "object", "additionalProperties": TEXT},
    "t": {"type": "string", "format": "date-time"},
    "e": {"type": "string", "format": "duration"},
    "ios": {"x-kubernetes-int-or-string": True},
    "b-c": TEXT,
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
    "n": {"type": "string", "nullable": True},
}
VALUE: dict[str, Any] = {
    "a": 1,
    "f": 2,
    "s": "abc",
    "l": [1, 2, 3],
    "o": [{"x": 1, "namespace": "q"}],
    "m": {"k": "y"},
    "e": "90m",
    "t": "2020-01-01T00:00:00Z",
    "ios": 5,
    "b-c": "q",
    "set": ["a", "b"],
    "n": None,
    "undeclared": 1,
}


def schema(**more: Any) -> JSONSchemaProps:
    return codec.convert({"type": "object", "properties": PROPERTIES, **more}, JSONSchemaProps)


HOLD = [
    "self.a == 1 && self.a > 0.5 && self.f == 2.0",
    "has(self.a) && !has(self.o[0].x) || true",
    "self.l.all(i, i > 0) && self.l.exists(i, i == 3) && self.l.exists_one(i, i == 2)",
    "self.l.map(i, i * 2) == [2, 4, 6] && self.l.filter(i, i > 1).size() == 2",
    "self.l.isSorted() && self.l.sum() == 6 && self.l.min() == 1 && self.l.max() == 3 && self.l.indexOf(2) == 1",
    "sets.contains(self.l, [1]) && sets.equivalent([1, 2], [2, 1]) && !sets.intersects([1], [2])",
    "self.set == ['b', 'a']",
    "self.b__dash__c == 'q'",
    "self.o.exists(e, e.__namespace__ == 'q')",
    "quantity('1Gi').isGreaterThan(quantity('1Mi')) && quantity('100m').isLessThan(quantity('1')) && !isQuantity('x')",
    "quantity('1').add(quantity('500m')).compareTo(quantity('1500m')) == 0 && quantity('5').asInteger() == 5",
    "self.s.split('b').size() == 2 && self.s.upperAscii() == 'ABC' && self.s.substring(1) == 'bc'",
    "self.s.matches('^a.c$') && self.s.find('b.') == 'bc' && 'aXbX'.findAll('X').size() == 2",
    "self.s.startsWith('a') && self.s.endsWith('c') && self.s.contains('b') && ' x '.trim() == 'x'",
    "isIP('::1') && ip('1.2.3.4').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.1.1') && !isCIDR('x')",
    "url('https://a.b:80/c?d=e').getHostname() == 'a.b'",
    "url('https://a.b/c').getEscapedPath() == '/c' && url('/x').getScheme() == '' && !isURL('x y')",
    "url('https://a.b:80/c?d=e&d=f').getQuery() == {'d': ['e', 'f']} && url('http://a:1').getHost() == 'a:1'",
    "self.t < timestamp('2021-01-01T00:00:00Z') && self.t.getFullYear() == 2020 && self.e == duration('1h30m')",
    "type(self.ios) == int ? self.ios > 4 : true",
    "self.m.all(k, self.m[k] == 'y') && 'k' in self.m && has(self.m.k)",
    "self.a >= oldSelf.a",
    "string(self.a) == '1' && int('5') == 5 && ['a', 'b'].join('-') == 'a-b'",
]


HOLD += [
    "self.l.map(i, i > 1, i) == [2, 3] && self.l.all(i, v, v == i + 1) && self.l.transformList(i, v, i * v)[2] == 6",
    "self.?s.orValue('x') == 'abc'",
    "optional.none().orValue(1) == 1",
    "self.?s.or(optional.of('y')).hasValue()",
    "'%s is %d, %.2f'.format([dyn('a'), dyn(1), dyn(1.5)]) == 'a is 1, 1.50' && strings.quote('a\"') == '\"a\\\\\"\"'",
    "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0-a').isLessThan(semver('1.0.0')) && !isSemver('1')",
    "!format.named('dns1123Label').value().validate('a-b').hasValue()",
    "cidr('10.1.0.0/8').masked() == cidr('10.0.0.0/8')",
    "timestamp('2020-01-01T00:00:00Z') + duration('1h') > self.t && duration('90s').getMinutes() == 1",
    "1u + 2u == 3u && -7 / 2 == -3 && -7 % 2 == -1 && b'ab' + b'c' == b'abc' && 0x1F == 31 && r'\\n'.size() == 2",
    "[1, 2].all(x, [3].all(x, x == 3) && x < 3) && {'a': 1, 'b': 2}.exists(k, k == 'b')",
    "false && 1 / (self.a - 1) == 1 || true",
    "[0, 1].exists(x, 1 / x == 1)",
]


def known() -> Declared:
    found = declared(schema())
    assert found is not None
    return found


def checked(text: str) -> Checked | str:
    return check(text, {"self": known().kind, "oldSelf": known().kind})


def run(text: str, *, limit: int = 1_000_000) -> Outcome:
    found, value = checked(text), typed_value(VALUE, known())
    assert isinstance(found, Checked), found
    return Program(found).run({"self": value, "oldSelf": value}, limit)


@pytest.mark.parametrize("text", HOLD)
def test_rules_that_hold(text: str) -> None:
    assert run(text) == Outcome(run(text).cost, True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("self.undeclared == 1", "1:5: undefined field 'undeclared'"),
        ("self.o.all(e, f == 1)", "1:15: undeclared reference to 'f' (in container '')"),
        ("self.frobnicate()", "1:16: undeclared reference to 'frobnicate'"),
        ("cel.bind(x, 1, x) == 1", "undeclared reference to 'cel'"),
        ("self.a ==", "1:10: Syntax error: mismatched input '<EOF>' expecting {'['"),
        ("self.a == 1 1", "extraneous input '1' expecting <EOF>"),
        ("(self.a == 1", "missing ')' at '<EOF>'"),
        ("self.s.startsWith()", "found no matching overload for 'startsWith' applied to 'string.()'"),
        ("oldSelf.hasValue()", "found no matching overload for 'hasValue'"),
        ("(" * 2000 + "true" + ")" * 2000, "expression recursion limit exceeded: 250"),
        ("1" + " + 1" * 300 + " > 0", "expression recursion limit exceeded: 250"),
        ("self" + ".a" * 300, "expression recursion limit exceeded: 250"),
        ("'" + "x" * 100_000 + "' == ''", "expression code point size exceeds limit"),
        ("has(self)", "invalid argument to has() macro"),
        ("sets.union([1], [2]) == []", "undeclared reference"),
        ("self.s == 1", "found no matching overload for '_==_' applied to '(string, int)'"),
        ("self.a + 'x' == 'x'", "found no matching overload for '_+_' applied to '(int, string)'"),
        ("!self.a", "found no matching overload for '!_' applied to '(int)'"),
        ("self.s.matches('(')", "invalid matches"),
        ("self.a.all(x, x > 1)", "expression of type 'int' cannot be range of a comprehension"),
        ("99999999999999999999 > 1", "invalid int literal"),
        ("'a", "token recognition error"),
    ],
)
def test_what_is_wrong_before_there_is_a_value(text: str, why: str) -> None:
    assert why in str(checked(text))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("self.l[7] == 1", "index out of bounds: 7"),
        ("1 / (self.a - 1) == 1", "division by zero"),
        ("1 % (self.a - 1) == 1", "modulus by zero"),
        ("self.m['q'] == 'x'", "no such key: q"),
        ("9223372036854775807 + self.a > 0", "integer overflow"),
        ("int(1e300) > 0", "integer overflow"),
        ("0u - 1u > 0u", "unsigned integer overflow"),
        ("int('x') > 0", "strconv.ParseInt"),
        ("type(self.ios) == string || self.ios.contains('x')", "no such overload"),
        ("'%.999999999f'.format([1.0]) == ''", "precision"),
    ],
)
def test_an_expression_that_comes_to_no_value(text: str, why: str) -> None:
    assert why in run(text).error


MANY = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]"


@pytest.mark.parametrize(
    "text",
    [
        f"{MANY}.all(a, {MANY}.all(b, {MANY}.all(c, {MANY}.all(d, {MANY}.all(e, a > 0)))))",
        "['x']" + ".map(x, x + x)" * 40 + ".size() > 0",
        "[[1]]" + ".map(x, x + x)" * 40 + "[0].size() > 0",
        "([[1]]" + ".map(x, [x, x])" * 40 + ") == ([[1]]" + ".map(x, [x, x])" * 40 + ")",
        "'%s'.format([[[1]]" + ".map(x, [x, x])" * 40 + "]).size() > 0",
        "['xxxxxxxxxx']" + ".map(x, x.replace('', x))" * 8 + ".size() > 0",
        "['xxxxxxxxxx']" + ".map(x, [x, x, x, x, x, x, x, x, x, x].join(x))" * 8 + ".size() > 0",
        "['aaaaaaaaaaaaaaaa']" + ".map(x, x + x)" * 16 + ".all(x, x.matches('" + "(a*)*" * 8 + "b'))",
    ],
)
def test_a_costly_evaluation_is_ended(text: str) -> None:
    """Nested loops, texts and lists that double, values with shared parts, patterns on long texts."""
    assert run("self.a == 1").cost == 3

    def ended() -> None:
        outcome = run(text)
        assert (outcome.over, outcome.cost > 1_000_000) == (True, True)

    assert cpu_ms(ended, most=5000) < 5000


def errors(new: Any, old: Any, *rules: dict[str, Any], **properties: Any) -> list[str]:
    inner = schema(properties=PROPERTIES | properties, **{"x-kubernetes-validations": list(rules)})
    whole = JSONSchemaProps(type="object", properties={"spec": inner})
    before = None if old is None else {"spec": old}
    return [f"{error.field}: {error.body}" for error in rule_errors({"spec": new}, before, whole)]


def test_messages_reasons_and_places() -> None:
    rule = {"rule": "self.a > 1"}
    assert errors({"a": 1}, None, rule) == ["spec: Invalid value: failed rule: self.a > 1"]
    placed = rule | {"message": "too few", "reason": "FieldValueForbidden", "fieldPath": ".a"}
    assert errors({"a": 1}, None, placed) == ["spec.a: Forbidden: too few"]
    said = rule | {"message": "plain", "messageExpression": "'a is ' + string(self.a)"}
    assert errors({"a": 1}, None, said) == ["spec: Invalid value: a is 1"]
    assert errors({"a": 1}, None, said | {"messageExpression": "self.s"})[0].endswith("plain")
    assert "no such key: s evaluating rule: self.s" in errors({"a": 1}, None, {"rule": "self.s == 'x'"})[0]


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
    item = {
        "type": "object",
        "required": ["x"],
        "properties": {"x": NUMBER, "v": NUMBER},
        "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "shrinks"}],
    }
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["x"]}
    new, old = [{"x": 2, "v": 1}, {"x": 1, "v": 1}], [{"x": 1, "v": 1}, {"x": 2, "v": 5}]
    assert errors({"k": new}, {"k": old}, k=keyed) == ["spec.k[0]: Invalid value: shrinks"]
    atomic = codec.convert({"type": "object", "properties": {"k": {"type": "array", "items": item}}}, JSONSchemaProps)
    assert ["uncorrelatable" in str(error) for error in schema_errors(atomic, "s")] == [True]
