"""Images of the distribution's own services, which scripts/setup-images makes, and the examples that run them."""

import json
import re
import socket
from pathlib import Path
from typing import Any

import yaml

from support.up import PODFIT, Up, run

CHECKOUT = Path(__file__).parents[2]
IMAGES = CHECKOUT / ".images"
NAMES = ("postgresql", "java", "memcached")


def missing_images() -> str:
    """Why no service of the distribution can be run here; empty when all can."""
    absent = [name for name in NAMES if not (IMAGES / f"{name}.tar").exists()]
    return f"no image of {' and '.join(absent)} (scripts/setup-images makes them)" if absent else ""


def load(up: Up, name: str) -> None:
    """Into the node's containerd."""
    loaded = run(PODFIT, "image", "load", "--data", str(up.root), str(IMAGES / f"{name}.tar"))
    assert loaded.code == 0, loaded.err


def example(name: str, port: int, free: int) -> list[dict[str, Any]]:
    """What examples/services/NAME.yaml has, on the host's network at a free port instead of its own."""
    text = (CHECKOUT / f"examples/services/{name}.yaml").read_text()
    found = [
        json.loads(json.dumps(document)) for document in yaml.safe_load_all(re.sub(rf"\b{port}\b", str(free), text))
    ]
    for document in found:
        if document["kind"] in ("Pod", "Deployment"):
            document["spec"].get("template", document)["spec"]["hostNetwork"] = True
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number
