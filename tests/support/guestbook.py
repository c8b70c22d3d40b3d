"""The guestbook of upstream's conformance tests, as a program for pods: a store, its copies, and who is asked by users.

    guestbook.py primary PORT                     /set?key=&value= changes it and its copies, /get?key= reads
    guestbook.py replica PORT PRIMARY             a copy, which the primary at that name tells of changes
    guestbook.py frontend PORT BACK PRIMARY COPY  /guestbook?cmd=set|get&key=&value=, by the two there, at port BACK

It imports nothing but the standard library, and runs on the Python of this machine, as `support.netexec` does.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit
from urllib.request import urlopen

PROGRAM = str(Path(__file__).resolve())
_values: dict[str, str] = {}
_copies: set[str] = set()


class _Handler(BaseHTTPRequestHandler):
    role, port, primary, copy = "", 0, "", ""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        given = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        answer = json.dumps(self._answer(parts.path, given)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def _answer(self, path: str, given: dict[str, str]) -> Any:
        key, value = given.get("key", ""), given.get("value", "")
        if path == "/guestbook" and given["cmd"] == "set":
            asked(self.primary, self.port, f"/set?key={quote(key)}&value={quote(value)}")
            return {"message": "Updated"}
        if path == "/guestbook":
            return {"data": asked(self.copy, self.port, f"/get?key={quote(key)}")}
        if path == "/register":
            _copies.add(self.client_address[0])
            return _values
        if path == "/set":
            _values[key] = value
            for host in _copies:
                asked(host, self.port, self.path)
        return _values.get(key, "")


def asked(host: str, port: int, path: str) -> Any:
    with urlopen(f"http://{host}:{port}{path}", timeout=20) as answer:
        return json.load(answer)


def main(role: str, port: str, *more: str) -> None:
    """See the top of the file."""
    _Handler.role, _Handler.port = role, int(port)
    if role == "frontend":
        back, _Handler.primary, _Handler.copy = more
        _Handler.port = int(back)
    while role == "replica":
        try:
            _values.update(asked(more[0], int(port), "/register"))
            break
        except OSError:
            time.sleep(0.2)
    ThreadingHTTPServer(("", int(port)), _Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
