"""Decoded JSON as Go's `fmt` prints it, which upstream's answers quote."""

import json
from typing import Any


def plain(value: Any) -> str:
    """What `%v` prints: `map[spec:map[containers:[map[name:c1]]]]`, keys sorted."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{plain(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(plain, value))}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def syntax(value: Any) -> str:
    """What `%#v` prints: `map[string]interface {}{"a":1}`."""
    if isinstance(value, dict):
        inside = ", ".join(f"{json.dumps(name, ensure_ascii=False)}:{syntax(value[name])}" for name in sorted(value))
        return f"{type_name(value)}{{{inside}}}"
    if isinstance(value, list):
        return f"{type_name(value)}{{{', '.join(map(syntax, value))}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return "interface {}(nil)" if value is None else plain(value)


def type_name(value: Any) -> str:
    """What `%T` prints."""
    names = {
        dict: "map[string]interface {}",
        list: "[]interface {}",
        str: "string",
        bool: "bool",
        int: "int64",
        float: "float64",
    }
    return names.get(type(value), "<nil>")
