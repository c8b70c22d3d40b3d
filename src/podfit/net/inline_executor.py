"""An executor without threads: what is submitted is done at once, in the caller.

A cluster whose time stands still between two steps of a test has to be able to come to rest, and work on its way
through a thread cannot be seen from the event loop. Only for work that is quick, such as a log in memory.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class InlineExecutor(ThreadPoolExecutor):
    """A ThreadPoolExecutor in name, because an event loop accepts no other as its default."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  (it is the caller's: raised where the future is awaited)
            future.set_exception(error)
        return future
