"""A package of which only a part is needed: its modules can be imported without what its `__init__` imports.

`import aiohttp` loads a client, a server, websockets, cookies, and reads the machine's certificate authorities twice: a
third of the time in which a cluster starts. What serves requests needs of it the parser alone. `only_parts` puts the
package into `sys.modules` without running its `__init__`, which runs as soon as somebody asks the package for a name
that none of its modules has; so for everybody else it is the package that it always was.
"""

import importlib
import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any


def only_parts(name: str) -> None:
    """From now on `import name.part` loads that part. Nothing changes for a package that is loaded already."""
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"No package named {name!r}", name=name)
    package = importlib.util.module_from_spec(spec)
    package.__class__ = _Package
    sys.modules[name] = package


class _Package(ModuleType):
    """Gives its modules; becomes an ordinary package when any other name is asked for."""

    def __getattr__(self, name: str) -> Any:
        with _lock:
            if type(self) is _Package and not _imported(f"{self.__name__}.{name}"):
                spec = self.__spec__
                assert spec is not None
                assert spec.loader is not None
                self.__class__ = ModuleType  # type: ignore[assignment]  # from now on an ordinary one
                spec.loader.exec_module(self)
        return ModuleType.__getattribute__(self, name)


def _imported(module: str) -> bool:
    """False when there is no such module."""
    if importlib.util.find_spec(module) is None:
        return False
    importlib.import_module(module)
    return True


_lock = threading.RLock()
