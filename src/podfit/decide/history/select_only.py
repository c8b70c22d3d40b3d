"""Which SQL may be asked of the history: one SELECT over its views, by functions that only compute.

It is judged as DuckDB itself parsed it (`json_serialize_sql`), not as text. Three more walls stand behind this one: the
library may open no file but the segments and its configuration is locked, and the process that runs it has no
environment, may write no file, and has its memory and time bounded (`vpa/history/own/queries.py`).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

LARGEST = 64 << 10
"""Characters of a question."""
ROWS_FROM = frozenset(("range", "generate_series", "unnest"))
"""Functions in FROM: those that need nothing but their arguments."""
NO_FUNCTIONS = frozenset(
    (
        *("getenv", "current_setting", "getvariable", "current_query", "write_log", "sleep_ms", "stats"),
        *("enable_profile", "disable_profile", "nextval", "currval", "setval", "setseed", "which_secret"),
        *("query", "query_table", "json_execute_serialized_sql", "json_serialize_plan"),
    )
)
"""What tells of the process, or acts; the `read_*` and `parquet_*` functions stand in FROM only."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_ONLY = "only one SELECT may be asked"


def refused(parsed: Mapping[str, Any], views: Collection[str]) -> str:
    """Why a statement may not be run; empty when it may. `parsed` is DuckDB's own tree of it."""
    if parsed.get("error"):
        kind, said = parsed.get("error_type", ""), str(parsed.get("error_message", "it cannot be read"))
        return _ONLY if kind == "not implemented" else said
    statements: Sequence[Any] = parsed.get("statements") or ()
    if len(statements) != 1:
        return _ONLY
    nodes = list(_nodes(statements[0]))
    names = frozenset(views) | {name for node in nodes for name in _defined(node)}
    return next(filter(None, (_wrong(node, names) for node in nodes)), "")


def _nodes(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Every object of it, without recursion: a question may be nested as deeply as DuckDB reads it."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _defined(node: Mapping[str, Any]) -> Iterator[str]:
    """Names that a WITH of this node gives. One that could be a file's gives nothing."""
    tables = node.get("cte_map")
    for entry in tables.get("map", ()) if isinstance(tables, dict) else ():
        name = str(entry.get("key", ""))
        if _IDENTIFIER.fullmatch(name):
            yield name


def _wrong(node: Mapping[str, Any], names: Collection[str]) -> str:
    kind = node.get("type")
    if kind == "BASE_TABLE":
        return _wrong_table(node, names)
    if kind == "TABLE_FUNCTION":
        name = str((node.get("function") or {}).get("function_name", "")).lower()
        return "" if name in ROWS_FROM else f"the function {name} may not be used"
    if kind == "SHOW_REF" and node.get("show_type") not in ("DESCRIBE", "SUMMARY"):
        return _ONLY
    name = str(node.get("function_name", "")).lower()
    return f"the function {name} may not be used" if name in NO_FUNCTIONS else ""


def _wrong_table(node: Mapping[str, Any], names: Collection[str]) -> str:
    name = str(node.get("table_name", ""))
    place = (node.get("qualified_name") or {}).get("path") or [name]
    if node.get("schema_name") or node.get("catalog_name") or len(place) != 1:
        return f"there is no table {'.'.join(map(str, place))}"
    known = {known.lower() for known in names}
    return "" if name.lower() in known else f"there is no table {name}"
