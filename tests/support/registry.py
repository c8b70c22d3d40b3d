"""A registry of images on this machine that asks who pulls: what containerd needs of the distribution API, over HTTP.

with registry(archive, user="ann", password="secret") as served:
    image = f"{served.host}/team/app:1"         any name and tag of it is the archive's image
"""

import base64
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass
class Served:
    """`refused` counts requests without the right credentials, `asked` are the paths of the others."""

    host: str
    refused: int = 0
    asked: list[str] = field(default_factory=list)


@contextmanager
def registry(archive: Path, *, user: str, password: str) -> Iterator[Served]:
    expected = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    with tarfile.open(archive) as tar:
        blobs = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
        content = {name: file.read() for name, file in blobs.items() if file is not None}
    (described,) = json.loads(content["index.json"])["manifests"]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def answer(self, *, with_body: bool) -> None:
            if self.headers.get("authorization") != expected:
                served.refused += 1
                self.reply(401, b"", {"WWW-Authenticate": 'Basic realm="test"'}, with_body=with_body)
                return
            served.asked.append(self.path)
            place, _, name = self.path.rpartition("/")
            is_manifest = place.endswith("/manifests")
            digest = name if name.startswith("sha256:") else described["digest"]
            data = content.get(f"blobs/{digest.replace(':', '/')}")
            if data is None:
                self.reply(404, b"", {}, with_body=with_body)
                return
            kind = MANIFEST if is_manifest else "application/octet-stream"
            self.reply(200, data, {"Content-Type": kind, "Docker-Content-Digest": digest}, with_body=with_body)

        def reply(self, code: int, data: bytes, headers: dict[str, str], *, with_body: bool) -> None:
            self.send_response(code)
            for header, text in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(header, text)
            self.end_headers()
            if with_body:
                self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class names it)
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served = Served(f"127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
