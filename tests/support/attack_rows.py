"""The lines of docs/bounds.md, and which of them the payloads of the attack suite attack."""

from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "bounds.md"
OF_PAYLOADS = {
    "request target": "request target",
    "query parameters": "query parameters",
    "label selector": "requirements and values",
    "field selector": "requirements and values",
    "numbers in a query": "numbers in a query",
    "digits of a number in a query": "numbers in a query",
    "continue token": "numbers in a query",
    "headers": "headers",
    "Accept": "headers",
    "warnings": "warnings of an answer",
    "values": "values (objects",
    "values of a list": "values (objects",
    "body": "body",
    "levels": "levels of a document",
    "managed fields": "values of a stored object",
    "finalizers": "values (objects",
    "names": "regular expressions",
    "labels": "regular expressions",
    "quantities": "regular expressions",
    "expansion": "environment, command and args",
    "definition": "text of an expression",
    "PEM": "PEM of a certificate request",
    "rules": "values (objects",
    "YAML keys": "YAML",
    "YAML aliases": "YAML",
    "YAML numbers": "YAML",
    "protobuf": "values (objects",
    "values of a patch": "values (objects",
    "levels of a patch": "levels of a document",
    "operations": "operations of a JSON patch",
    "copies": "what the copies",
    "insertions": "items that insertions",
    "parts of a pointer": "parts of a JSON pointer",
    "merged lists": "merging lists",
    "taken out of lists": "merging lists",
    "order of lists": "merging lists",
    "applied keys": "values (objects",
    "applied YAML": "YAML",
    "applied aliases": "YAML",
}
"""By the name of a payload's bound: how the line begins."""


def lines() -> list[str]:
    """The first cells of the page's tables."""
    cells = [line.split("|")[1].strip() for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [cell for cell in cells if cell != "what"]


def named(beginning: str) -> str:
    """The one line that is it, or begins with it."""
    exact = [line for line in lines() if line == beginning]
    found = exact or [line for line in lines() if line.startswith(beginning)]
    assert len(found) == 1, f"{beginning!r} is the beginning of {found}"
    return found[0]
