"""The `-o` of every command that answers something."""

from enum import StrEnum


class Output(StrEnum):
    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
