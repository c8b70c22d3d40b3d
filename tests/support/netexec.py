"""A program for pods whose network is looked at: it serves its host's name over HTTP and UDP, and asks others.

    netexec.py serve tcp/80 udp/80 ...     GET /hostname, /clientip; anything under /echo/ is counted, /echoed tells it
    netexec.py ask tcp|udp HOST PORT N     answers one by one, each on a line; an empty line where there is none
    netexec.py load HOST PORT N M          requests of N threads, each on a connection of its own, until its input ends
                                           and at least M are made: {"made", "failed", "first"}

On SIGTERM it closes its listeners, ends what it has begun, and goes. Pods are lent the Python of this machine with all
that it stands on (`container`). It imports nothing but the standard library.
"""

import json
import os
import signal
import socket
import socketserver
import sys
import sysconfig
import threading
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PYTHON = Path(sysconfig.get_config_var("prefix"))
LENT = ("/usr", "/lib", "/lib64", str(PYTHON), str(Path(__file__).parent))
PROGRAM = (f"{PYTHON}/bin/python3", "-S", str(Path(__file__).resolve()))
SECONDS, PATIENCE = 2.0, 20.0
_echoed: list[str] = []


def container(*ports: str, name: str = "app", **fields: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """One that serves at these ports, such as tcp/80, and the volumes that its pod has to have."""
    paths = [path for path in dict.fromkeys(LENT) if Path(path).exists()]
    mounts = [{"name": f"v{index}", "mountPath": path, "readOnly": True} for index, path in enumerate(paths)]
    volumes = [{"name": f"v{index}", "hostPath": {"path": os.path.realpath(path)}} for index, path in enumerate(paths)]
    made = {"name": name, "command": [*PROGRAM, "serve", *ports], "volumeMounts": mounts, **fields}
    first = next((port for port in ports if port.startswith("tcp/")), "")
    if first:
        probe = {"tcpSocket": {"port": int(first.removeprefix("tcp/"))}, "periodSeconds": 1}
        made.setdefault("readinessProbe", probe)
    return made, volumes


def ask(kind: str, host: str, port: int, path: str = "/hostname") -> str:
    """What is answered; empty without an answer."""
    try:
        return (_ask_http if kind == "tcp" else _ask_udp)(host, port, path)
    except (OSError, HTTPException):
        return ""


def _ask_http(host: str, port: int, path: str, timeout: float = SECONDS) -> str:
    connection = HTTPConnection(host, port, timeout=timeout)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def _ask_udp(host: str, port: int, path: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(SECONDS)
        asking.connect((host, port))
        asking.send(path.encode())
        return asking.recv(4096).decode()


class _Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5.0

    def do_GET(self) -> None:
        answer = _answer(self.path, self.client_address[0])
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def _method(self: _Http) -> None:
    """Any other: it says which, and what was sent with it."""
    length = int(self.headers.get("Content-Length") or 0)
    answer = json.dumps({"method": self.command, "body": self.rfile.read(length).decode(), "path": self.path})
    self.send_response(200)
    self.send_header("Content-Length", str(len(answer)))
    self.end_headers()
    self.wfile.write(answer.encode())


for _name in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
    setattr(_Http, f"do_{_name}", _method)


class _Udp(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        text, connection = self.request
        connection.sendto(_answer(text.decode(), self.client_address[0]).encode(), self.client_address)


class _Listener(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128


def _answer(path: str, client: str) -> str:
    if path.startswith("/echo/"):
        _echoed.append(path.removeprefix("/echo/"))
    if path == "/echoed":
        return json.dumps(_echoed)
    return client if path == "/clientip" else socket.gethostname()


def _serve(ports: list[str]) -> None:
    servers: list[socketserver.BaseServer] = []
    for text in ports:
        kind, _, port = text.partition("/")
        place = ("", int(port))
        servers.append(_Listener(place, _Http) if kind == "tcp" else socketserver.ThreadingUDPServer(place, _Udp))
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    for server in servers:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    ended.wait()
    for server in servers:
        server.shutdown()
        server.server_close()


def _load(host: str, port: int, many: int, least: int) -> dict[str, Any]:
    made, failed = [0] * many, list[str]()
    ended = threading.Event()

    def until_ended() -> None:
        sys.stdin.read()
        ended.set()

    def run(number: int) -> None:
        while not ended.is_set() or sum(made) < least:
            try:
                _ask_http(host, port, "/hostname", PATIENCE)
            except (OSError, HTTPException) as error:
                failed.append(f"{type(error).__name__}: {error}")
            made[number] += 1

    threads = [threading.Thread(target=run, args=(number,)) for number in range(many)]
    threading.Thread(target=until_ended, daemon=True).start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"made": sum(made), "failed": len(failed), "first": failed[:3]}


def main(words: list[str]) -> None:
    """See the top of the file."""
    if words[0] == "serve":
        _serve(words[1:])
        return
    if words[0] == "load":
        host, port, many, least = words[1:]
        sys.stdout.write(json.dumps(_load(host, int(port), int(many), int(least))))
        return
    kind, host, port, times, *path = words[1:]
    for _ in range(int(times)):
        sys.stdout.write(f"{ask(kind, host, int(port), *path)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
