"""Requests from many connections at once, from a process of its own.

    python flood.py PORT CA CERT KEY CONNECTIONS PATH

Prints a line when every connection has its first answer, and goes on until it is ended.
"""

import select
import socket
import ssl
import sys


def main() -> None:
    port, authority, certificate, key, connections, path = sys.argv[1:]
    tls = ssl.create_default_context(cafile=authority)
    tls.load_cert_chain(certificate, key)
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n".encode()
    poll, open_ = select.epoll(), {}
    for _ in range(int(connections)):
        sock = tls.wrap_socket(socket.create_connection(("127.0.0.1", int(port))), server_hostname="127.0.0.1")
        sock.sendall(request)
        sock.setblocking(False)
        open_[sock.fileno()] = sock
        poll.register(sock, select.EPOLLIN)
    answered: set[int] = set()
    while True:
        for number, _ in poll.poll():
            sock = open_[number]
            try:
                text = sock.recv(1 << 16)
            except ssl.SSLWantReadError:
                continue
            if not text:
                return
            sock.setblocking(True)
            sock.sendall(request)
            sock.setblocking(False)
            if len(answered) < len(open_):
                answered.add(number)
                if len(answered) == len(open_):
                    sys.stdout.write("flooding\n")
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
