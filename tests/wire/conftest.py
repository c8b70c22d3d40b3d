"""Foreign clients leave sockets open; what they left is collected here, where it is no fault of podfit's."""

import gc
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def left_open() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
