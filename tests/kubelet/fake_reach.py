"""A network that answers what a test says.

reach.answers["http://10.0.0.1:80/"] = 503     a status, or the text of a failure; what is not named answers 200
reach.answers["10.0.0.1:80"] = "dial tcp …"    the same of tcp and grpc
reach.asked                                    what was asked, in order
"""

from podfit.kubelet.runtime.container_network import Failed, Headers, HttpAnswer


class FakeReach:
    def __init__(self) -> None:
        self.answers: dict[str, int | str] = {}
        self.asked: list[str] = []
        self.headers: list[Headers] = []

    async def http(self, url: str, headers: Headers, *, timeout: float) -> HttpAnswer:
        self.headers.append(headers)
        status = self._answer(url)
        return HttpAnswer(status)

    async def tcp(self, host: str, port: int, *, timeout: float) -> None:
        self._answer(f"{host}:{port}")

    async def grpc(self, host: str, port: int, service: str, *, timeout: float) -> None:
        self._answer(f"{host}:{port}")

    def _answer(self, what: str) -> int:
        self.asked.append(what)
        answer = self.answers.get(what, 200)
        if isinstance(answer, str):
            raise Failed(answer)
        return answer
