"""Defaults of APIServices."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.apiregistration.v1.types import APIService
from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import fill, inside


def _registration(registered: APIService) -> APIService:
    return inside(registered, spec=lambda spec: inside(spec, service=lambda service: fill(service, port=443)))


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {APIService: _registration}
