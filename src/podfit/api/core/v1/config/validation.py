"""ConfigMaps, Secrets, and objects that are little more than a name."""

from collections.abc import Iterable

import msgspec

from podfit.api.core.v1.config.types import ConfigMap, Secret
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import immutable, validate_meta
from podfit.core.fields import FieldError, forbidden, invalid, required, too_long
from podfit.core.go_json import LONGEST, syntax_error

_LIMIT = 1024 * 1024
_REDACTED = "<secret contents redacted>"
_NEEDED = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}
_JSON = (".dockercfg", ".dockerconfigjson")
_SORTS = {b"{": "", b"n": "", b"t": "bool", b"f": "bool", b'"': "string", b"[": "array"}
"""What a JSON value is by its first byte; empty for what a map can be read from."""
_ACCOUNT = "kubernetes.io/service-account.name"


def validate_config_map(config: ConfigMap) -> list[FieldError]:
    errors = []
    for key in sorted(config.data):
        errors += _key(key, f"data[{key}]")
        if key in config.binary_data:
            errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    for key in sorted(config.binary_data):
        errors += _key(key, f"binaryData[{key}]")
    sizes = (len(text.encode()) for text in config.data.values())
    return errors + _size("[]", [*sizes, *map(len, config.binary_data.values())])


def _key(key: str, path: str) -> list[FieldError]:
    return [invalid(path, key, text) for text in names.config_key(key)]


def _size(path: str, sizes: Iterable[int]) -> list[FieldError]:
    return [too_long(path, _LIMIT)] if sum(sizes) > _LIMIT else []


def validate_config_map_update(new: ConfigMap, old: ConfigMap) -> list[FieldError]:
    errors = []
    if old.immutable:
        text = "field is immutable when `immutable` is set"
        errors += [] if new.immutable else [forbidden("immutable", text)]
        errors += [] if new.data == old.data else [forbidden("data", text)]
        errors += [] if new.binary_data == old.binary_data else [forbidden("binaryData", text)]
    return errors + _as_new(new.metadata) + validate_config_map(new)


def validate_secret(secret: Secret) -> list[FieldError]:
    errors = []
    for key in sorted(secret.data):
        errors += _key(key, f"data[{key}]")
    errors += _size("data", map(len, secret.data.values()))
    if secret.type == "kubernetes.io/service-account-token" and not secret.metadata.annotations.get(_ACCOUNT):
        errors.append(required(f"metadata.annotations[{_ACCOUNT}]"))
    if secret.type == "kubernetes.io/basic-auth" and not secret.data.keys() & {"username", "password"}:
        errors += [required("data[username]"), required("data[password]")]
    if secret.type == "kubernetes.io/ssh-auth" and not secret.data.get("ssh-privatekey"):
        errors.append(required("data[ssh-privatekey]"))
    for key in _NEEDED.get(secret.type, ()):
        if key not in secret.data:
            errors.append(required(f"data[{key}]"))
        elif key in _JSON and (problem := _json_problem(secret.data[key])):
            errors.append(invalid(f"data[{key}]", _REDACTED, problem))
    return errors


def _json_problem(data: bytes) -> str:
    """Why these bytes are no JSON object, in the words of the language the API server is written in."""
    if wrong := syntax_error(data):
        return wrong
    if len(data) > LONGEST and not _is_json(data):
        return "it is not valid JSON"
    sort = _SORTS.get(data.strip(b" \t\r\n")[:1], "number")
    return f"json: cannot unmarshal {sort} into Go value of type map[string]interface {{}}" if sort else ""


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except msgspec.DecodeError:
        return False
    return True


def validate_secret_update(new: Secret, old: Secret) -> list[FieldError]:
    errors = immutable(new.type, old.type, "type")
    if old.immutable:
        text = "field is immutable when `immutable` is set"
        errors += [] if new.immutable else [forbidden("immutable", text)]
        errors += [] if new.data == old.data else [forbidden("data", text)]
    return errors + _as_new(new.metadata) + validate_secret(new)


def _as_new(meta: ObjectMeta) -> list[FieldError]:
    """Changed ones are judged by the rules of new ones as well."""
    return validate_meta(meta, namespaced=True, name_rule=names.dns_subdomain)
