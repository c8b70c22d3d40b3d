"""Columns of `kubectl get` for config maps and secrets."""

from typing import Any

from podfit.api.columns import AGE, NAME, age, name_of
from podfit.api.core.v1.config.types import ConfigMap, Secret
from podfit.api.registry import Column

CONFIG_MAP = (NAME, Column("Data", description="How many entries it has."), AGE)


def config_map_row(config: ConfigMap, now: str) -> list[Any]:
    return [name_of(config), len(config.data) + len(config.binary_data), age(config, now)]


SECRET = (
    NAME,
    Column("Type", description="What the secret is for."),
    Column("Data", description="How many entries it has."),
    AGE,
)


def secret_row(secret: Secret, now: str) -> list[Any]:
    return [name_of(secret), secret.type, len(secret.data), age(secret, now)]
