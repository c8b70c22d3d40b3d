"""The CEL function library: standard functions and Kubernetes' extensions, by name, with their signatures.

A line reads `name receiver.(types) result overload`; one without a receiver is a function. `A` and `B` are free.
"""

from dataclasses import dataclass
from functools import cache

from podfit.api.structural.cel.types import Type

QUANTITY, IP, CIDR, URL, FORMAT, SEMVER = (
    "kubernetes.Quantity",
    "net.IP",
    "net.CIDR",
    "kubernetes.URL",
    "kubernetes.NamedFormat",
    "kubernetes.Semver",
)
_SHORT = {
    "Quantity": QUANTITY,
    "IP": IP,
    "CIDR": CIDR,
    "URL": URL,
    "Format": FORMAT,
    "Semver": SEMVER,
    "Authorizer": "kubernetes.authorization.Authorizer",
    "PathCheck": "kubernetes.authorization.PathCheck",
    "GroupCheck": "kubernetes.authorization.GroupCheck",
    "null": "null",
    "optional": "optional_type",
    "ResourceCheck": "kubernetes.authorization.ResourceCheck",
    "Decision": "kubernetes.authorization.Decision",
}
_NUMBERS = ("int", "uint", "double")
_ORDERED = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")


@dataclass(frozen=True, slots=True)
class Overload:
    id: str
    takes: tuple[Type, ...]
    gives: Type
    method: bool = False


def _operators() -> list[str]:
    lines = [
        "_?_:_ (bool,A,A) A conditional",
        "_&&_ (bool,bool) bool logical_and",
        "_||_ (bool,bool) bool logical_or",
        "!_ (bool) bool not",
        "_==_ (A,A) bool equals",
        "_!=_ (A,A) bool not_equals",
        "@in (A,list<A>) bool in_list",
        "@in (A,map<A,B>) bool in_map",
        "_[_] (list<A>,int) A index_list",
        "_[_] (map<A,B>,A) B index_map",
        "_[?_] (list<A>,int) optional<A> index_optional_list",
        "_[?_] (map<A,B>,A) optional<B> index_optional_map",
        "-_ (int) int negate",
        "-_ (double) double negate",
        "_%_ (int,int) int modulo",
        "_%_ (uint,uint) uint modulo",
    ]
    lines += [f"_{sign}_ ({kind},{kind}) {kind} arithmetic" for sign in "+-*/" for kind in _NUMBERS]
    lines += [f"_+_ ({kind},{kind}) {kind} add_{kind}" for kind in ("string", "bytes")]
    lines += [
        "_+_ (list<A>,list<A>) list<A> add_list",
        "_+_ (duration,duration) duration time",
        "_+_ (timestamp,duration) timestamp time",
        "_+_ (duration,timestamp) timestamp time",
        "_-_ (timestamp,timestamp) duration time",
        "_-_ (timestamp,duration) timestamp time",
        "_-_ (duration,duration) duration time",
    ]
    for sign, name in (("<", "less"), ("<=", "less_equals"), (">", "greater"), (">=", "greater_equals")):
        lines += [f"_{sign}_ ({kind},{kind}) bool {name}_{kind}" for kind in _ORDERED]
        lines += [
            f"_{sign}_ ({one},{other}) bool {name}_{one}_{other}"
            for one in _NUMBERS
            for other in _NUMBERS
            if one != other
        ]
    return lines


def _standard() -> list[str]:
    lines = [
        f"size {form} int size"
        for kind in ("string", "bytes", "list<A>", "map<A,B>")
        for form in (f"({kind})", f"{kind}.()")
    ]
    conversions = {
        "bool": ("bool", "string"),
        "bytes": ("bytes", "string"),
        "double": ("double", "int", "uint", "string"),
        "duration": ("duration", "string"),
        "int": ("int", "uint", "double", "string", "timestamp"),
        "string": ("string", "bool", "int", "uint", "double", "bytes", "timestamp", "duration"),
        "timestamp": ("timestamp", "int", "string"),
        "uint": ("uint", "int", "double", "string"),
    }
    lines += [f"{to} ({given}) {to} {given}_to_{to}" for to, kinds in conversions.items() for given in kinds]
    lines += [
        "type (A) type<A> type",
        "dyn (A) dyn to_dyn",
        "matches (string,string) bool matches",
        "matches string.(string) bool matches_string",
        "contains string.(string) bool contains_string",
        "startsWith string.(string) bool starts_with_string",
        "endsWith string.(string) bool ends_with_string",
    ]
    for name in ("Date", "DayOfMonth", "DayOfWeek", "DayOfYear", "FullYear", "Month"):
        lines += [f"get{name} timestamp.() int get", f"get{name} timestamp.(string) int get"]
    for name in ("Hours", "Minutes", "Seconds", "Milliseconds"):
        lines += [
            f"get{name} timestamp.() int get",
            f"get{name} timestamp.(string) int get",
            f"get{name} duration.() int get",
        ]
    return lines


_TEXTS = """
charAt string.(int) string char_at
indexOf string.(string) int index_of
indexOf string.(string,int) int index_of
lastIndexOf string.(string) int last_index_of
lastIndexOf string.(string,int) int last_index_of
join list<string>.() string join
join list<string>.(string) string join
lowerAscii string.() string ascii
upperAscii string.() string ascii
replace string.(string,string) string replace
replace string.(string,string,int) string replace
split string.(string) list<string> split
split string.(string,int) list<string> split
substring string.(int) string substring
substring string.(int,int) string substring
trim string.() string trim
format string.(list<dyn>) string string_format
strings.quote (string) string strings_quote
find string.(string) string find
findAll string.(string) list<string> find_all
findAll string.(string,int) list<string> find_all
sets.contains (list<A>,list<A>) bool list_sets_contains_list
sets.equivalent (list<A>,list<A>) bool list_sets_equivalent_list
sets.intersects (list<A>,list<A>) bool list_sets_intersects_list
indexOf list<A>.(A) int list_index_of
lastIndexOf list<A>.(A) int list_last_index_of
"""
_OBJECTS = """
quantity (string) Quantity string_to_quantity
isQuantity (string) bool is_quantity
sign Quantity.() int quantity
isInteger Quantity.() bool quantity
asInteger Quantity.() int quantity
asApproximateFloat Quantity.() double quantity
isGreaterThan Quantity.(Quantity) bool quantity
isLessThan Quantity.(Quantity) bool quantity
compareTo Quantity.(Quantity) int quantity
add Quantity.(Quantity) Quantity quantity
add Quantity.(int) Quantity quantity
sub Quantity.(Quantity) Quantity quantity
sub Quantity.(int) Quantity quantity
ip (string) IP string_to_ip
isIP (string) bool is_ip
ip.isCanonical (string) bool ip_is_canonical
family IP.() int ip
isUnspecified IP.() bool ip
isLoopback IP.() bool ip
isLinkLocalMulticast IP.() bool ip
isLinkLocalUnicast IP.() bool ip
isGlobalUnicast IP.() bool ip
string (IP) string ip_to_string
cidr (string) CIDR string_to_cidr
isCIDR (string) bool is_cidr
containsIP CIDR.(string) bool cidr_contains_ip_string
containsIP CIDR.(IP) bool cidr_contains_ip_ip
containsCIDR CIDR.(string) bool cidr_contains_cidr_string
containsCIDR CIDR.(CIDR) bool cidr_contains_cidr
ip CIDR.() IP cidr_ip
prefixLength CIDR.() int cidr
masked CIDR.() CIDR cidr
string (CIDR) string cidr_to_string
url (string) URL string_to_url
isURL (string) bool is_url
getScheme URL.() string url
getHost URL.() string url
getHostname URL.() string url
getPort URL.() string url
getEscapedPath URL.() string url
getQuery URL.() map<string,list<string>> url
format.named (string) optional<Format> format_named
validate Format.(string) optional<list<string>> format_validate
semver (string) Semver semver
semver (string,bool) Semver semver
isSemver (string) bool is_semver
isSemver (string,bool) bool is_semver
major Semver.() int semver
minor Semver.() int semver
patch Semver.() int semver
isGreaterThan Semver.(Semver) bool semver
isLessThan Semver.(Semver) bool semver
compareTo Semver.(Semver) int semver
hasValue optional<A>.() bool optional
value optional<A>.() A optional
orValue optional<A>.(A) A optional
or optional<A>.(optional<A>) optional<A> optional
optional.of (A) optional<A> optional
optional.ofNonZeroValue (A) optional<A> optional
optional.none () optional<A> optional
path Authorizer.(string) PathCheck authorizer
check PathCheck.(string) Decision check
group Authorizer.(string) GroupCheck authorizer
serviceAccount Authorizer.(string,string) Authorizer authorizer
resource GroupCheck.(string) ResourceCheck authorizer
subresource ResourceCheck.(string) ResourceCheck authorizer
namespace ResourceCheck.(string) ResourceCheck authorizer
name ResourceCheck.(string) ResourceCheck authorizer
check ResourceCheck.(string) Decision check
fieldSelector ResourceCheck.(string) ResourceCheck authorizer
labelSelector ResourceCheck.(string) ResourceCheck authorizer
allowed Decision.() bool authorizer
reason Decision.() string authorizer
errored Decision.() bool authorizer
error Decision.() string authorizer
"""


def _lists() -> list[str]:
    lines = [f"sum list<{kind}>.() {kind} list_sum" for kind in ("int", "uint", "double", "duration")]
    for name in ("min", "max"):
        lines += [f"{name} list<{kind}>.() {kind} list_{name}" for kind in _ORDERED]
    return lines + [f"isSorted list<{kind}>.() bool list_is_sorted" for kind in _ORDERED]


@cache
def overloads() -> dict[str, tuple[Overload, ...]]:
    found: dict[str, tuple[Overload, ...]] = {}
    for line in [*_operators(), *_standard(), *_lists(), *_TEXTS.split("\n"), *_OBJECTS.split("\n")]:
        if line:
            name, form, gives, overload = line.split(" ")
            receiver, _, rest = form.partition("(")
            takes = ([receiver[:-1]] if receiver else []) + _split(rest[:-1])
            one = Overload(overload, tuple(map(_type, takes)), _type(gives), bool(receiver))
            found[name] = (*found.get(name, ()), one)
    return found


def _split(text: str) -> list[str]:
    """At the commas that stand outside of angles."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "<") - (letter == ">")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part]


def _type(text: str) -> Type:
    name, _, rest = text.partition("<")
    return Type(_SHORT.get(name, name), tuple(map(_type, _split(rest[:-1]))))
