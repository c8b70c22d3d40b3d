"""Chance is handed in (`core.randomness`): nothing else draws, except for secrets, from the machine."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "podfit"
DRAWING = {"random", "secrets", "numpy.random"}
DRAWN = {"uuid.uuid1", "uuid.uuid4", "os.urandom", "os.getrandom"}
WORDS = ("random", "secrets", "uuid")
OWNERS = {
    "net/system.py": "the machine's, and that of a seed",
    "net/http_intake.py": "secret: the path by which the server asks itself whether it is there",
    "process/node/machine.py": "nothing is made of it: whether the kernel could give any is what is asked",
    "process/control/bootstrap.py": "secret: tokens with which machines join",
    "store/encrypted.py": "nonces of encryption at rest, which no two values may share",
}


def drawn(path: Path) -> Iterator[str]:
    """Names by which a file can draw: modules that it imports, functions of them that it names."""
    text = path.read_text()
    if not any(word in text for word in WORDS):
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names if alias.name in DRAWING)
            case ast.ImportFrom() if node.level == 0:
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                names.add(str(node.module))
                yield from names & (DRAWN | DRAWING)
            case ast.Attribute(value=ast.Name()):
                yield from {ast.unparse(node)} & (DRAWN | {"np.random", "numpy.random"})


def test_only_the_owners_draw() -> None:
    found = {str(path.relative_to(SOURCE)): names for path in SOURCE.rglob("*.py") if (names := set(drawn(path)))}
    assert found.keys() == OWNERS.keys(), found
