"""Counts of the name server, under CoreDNS' names.

They are plain numbers, read when somebody scrapes: counting must not cost more than answering.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator

from podfit.net.metrics import Distribution, Metrics

BOUNDS = (
    0.00025,
    0.0005,
    0.001,
    0.002,
    0.004,
    0.008,
    0.016,
    0.032,
    0.064,
    0.128,
    0.256,
    0.512,
    1.024,
    2.048,
    4.096,
    8.192,
)
CODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED"}
CLUSTER, ELSEWHERE = "cluster", "."
"""Whose the name was."""


class DnsMetrics:
    """`requests` by protocol and whose name it was, `responses` by code. `dropped` by the reason why nobody was
    answered; `false` are answers to another question than was asked.
    """

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()
        self.responses: Counter[int] = Counter()
        self.dropped: Counter[str] = Counter()
        self.hits: Counter[str] = Counter()
        self.misses = self.false = 0
        self.forwarded: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._buckets = {zone: [0] * (len(BOUNDS) + 1) for zone in (CLUSTER, ELSEWHERE)}
        self._seconds = dict.fromkeys(self._buckets, 0.0)

    def took(self, zone: str, seconds: float) -> None:
        self._buckets[zone][bisect_left(BOUNDS, seconds)] += 1
        self._seconds[zone] += seconds

    def declare(
        self,
        metrics: Metrics,
        *,
        entries: Callable[[], dict[str, int]],
        names: Callable[[], int],
        waiting: Callable[[], int],
    ) -> None:
        """`entries` of the cache by kind, `names` of the zone, questions `waiting` for resolvers."""

        def counter(
            name: str, text: str, labels: tuple[str, ...], read: Callable[[], dict[tuple[str, ...], int]]
        ) -> None:
            metrics.collected(f"coredns_{name}_total", text, labels, lambda: list(read().items()), type_="counter")

        counter(
            "dns_requests", "Requests by protocol and zone.", ("proto", "zone"), lambda: dict(self.requests.items())
        )
        counter(
            "dns_responses",
            "Responses by code.",
            ("rcode",),
            lambda: {(CODES.get(code, str(code)),): count for code, count in self.responses.items()},
        )
        counter("dns_dropped", "Messages that were not answered.", ("reason",), lambda: _labelled(self.dropped))
        metrics.distributed(
            "coredns_dns_request_duration_seconds", "How long each request took.", ("zone",), self._distributions
        )
        counter("cache_hits", "Answers from the cache.", ("type",), lambda: _labelled(self.hits))
        counter("cache_misses", "Answers that were not in the cache.", (), lambda: {(): self.misses})
        metrics.collected(
            "coredns_cache_entries",
            "Answers in the cache.",
            ("type",),
            lambda: [((kind,), count) for kind, count in entries().items()],
        )
        counter("forward_requests", "Requests to resolvers.", ("to",), lambda: _labelled(self.forwarded))
        counter("forward_failures", "Requests that a resolver did not answer.", ("to",), lambda: _labelled(self.failed))
        counter("forward_false_answers", "Answers to another question.", (), lambda: {(): self.false})
        metrics.collected(
            "coredns_forward_waiting", "Questions that wait for resolvers.", (), lambda: [((), waiting())]
        )
        metrics.collected("coredns_kubernetes_names", "Names of Services.", (), lambda: [((), names())])

    def _distributions(self) -> Iterator[Distribution]:
        for zone, counts in self._buckets.items():
            yield (zone,), BOUNDS, tuple(counts), self._seconds[zone]


def _labelled(counts: "Counter[str]") -> dict[tuple[str, ...], int]:
    return {(name,): count for name, count in counts.items()}
