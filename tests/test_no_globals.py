"""Nothing in a process is global to several clusters in it: what is remembered belongs to an object of one cluster."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "podfit"
CHANGEABLE = {
    "dict", "list", "set", "OrderedDict", "defaultdict", "Counter", "deque", "count", "WeakKeyDictionary",
    "WeakValueDictionary", "Remembered", "Metrics", "CollectorRegistry", "ThreadPoolExecutor", "Supervisor", "Lock",
    "Event", "Queue",
}  # fmt: skip
READ_ONLY = ("Mapping[", "ResourceList")  # annotations of what mypy lets nobody change; the second names the first
PURE = {
    ("api/structural/compiled.py", "_KNOWN"): "what a schema's rules mean, by the schema itself; bounded",
    ("cli/render.py", "_LEFT"): "streams of the process, which no cluster has",
}


def kept(path: Path) -> set[tuple[str, str]]:
    """Module-level names of what can change, beside tables that are written out in full."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        value, target = node.value, node.targets[0] if isinstance(node, ast.Assign) else node.target
        read_only = isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).startswith(READ_ONLY)
        empty = (
            not read_only and isinstance(value, ast.Dict | ast.List | ast.Set) and not ast.unparse(value).strip("{}[]")
        )
        called = isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in CHANGEABLE
        if empty or (called and isinstance(value, ast.Call) and not value.args):
            found.add((str(path.relative_to(SOURCE)), ast.unparse(target)))
    return found


def test_a_module_keeps_nothing_of_a_cluster() -> None:
    found = {name for path in SOURCE.rglob("*.py") if not path.stem.endswith("_pb2") for name in kept(path)}
    assert found == set(PURE)


def test_no_function_rebinds_a_name_of_its_module() -> None:
    for path in SOURCE.rglob("*.py"):
        found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Global)]
        assert not found, f"{path}: {found and found[0].names}"
