"""The command lines that an answer advises: with the options that reach the same cluster as the question did."""

import shlex

import msgspec


class Commands(msgspec.Struct, frozen=True, kw_only=True):
    """Options that were given and differ from what kubectl and podfit use without them; empty where none is needed."""

    namespace: str = ""
    context: str = ""
    kubeconfig: str = ""

    def podfit(self, *words: str) -> str:
        """A podfit command about this namespace, quoted for a shell."""
        return shlex.join(("podfit", *words, *self._namespace(), *self._cluster()))

    def kubectl(self, *words: str) -> str:
        """A kubectl command about this namespace."""
        return shlex.join(("kubectl", *words, *self._namespace(), *self._cluster()))

    def kubectl_anywhere(self, *words: str) -> str:
        """A kubectl command that no namespace is needed for, or that names its own."""
        return shlex.join(("kubectl", *words, *self._cluster()))

    def kubectl_config(self, *words: str) -> str:
        """`kubectl config ...`, which is about the file and not about one of its contexts."""
        return shlex.join(("kubectl", "config", *words, *_option("--kubeconfig", self.kubeconfig)))

    def _namespace(self) -> tuple[str, ...]:
        return _option("--namespace", self.namespace)

    def _cluster(self) -> tuple[str, ...]:
        return (*_option("--context", self.context), *_option("--kubeconfig", self.kubeconfig))


def _option(name: str, value: str) -> tuple[str, ...]:
    return (name, value) if value else ()


HERE = Commands()
"""Of a question that needed no options."""
