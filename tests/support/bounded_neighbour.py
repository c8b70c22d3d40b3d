"""A second client, in a process of its own, while another one attacks.

    python bounded_neighbour.py PORT CA CERT KEY PATH

Asks for PATH every 5 ms on one connection. At each line on its input it prints the milliseconds that the slowest of a
hundred answers took (the 99th percentile), the worst, and how many there were since the line before.
"""

import http.client
import json
import ssl
import sys
import threading
import time

EVERY_SECONDS = 0.005


def main() -> None:
    port, authority, certificate, key, path = sys.argv[1:]
    tls = ssl.create_default_context(cafile=authority)
    tls.load_cert_chain(certificate, key)
    took: list[float] = []

    def ask() -> None:
        connection = http.client.HTTPSConnection("127.0.0.1", int(port), context=tls, timeout=120)
        while True:
            began = time.monotonic()
            try:
                connection.request("GET", path)
                connection.getresponse().read()
            except OSError:  # the server is gone, or about to go: whoever attacks it says so
                connection.close()
                time.sleep(0.1)
                continue
            took.append(1000 * (time.monotonic() - began))
            time.sleep(EVERY_SECONDS)

    threading.Thread(target=ask, daemon=True).start()
    for _ in sys.stdin:
        round_, took[:] = sorted(took), []
        figures = (round_[int(len(round_) * 0.99)], round_[-1]) if round_ else (0.0, 0.0)
        sys.stdout.write(json.dumps([*figures, len(round_)]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
