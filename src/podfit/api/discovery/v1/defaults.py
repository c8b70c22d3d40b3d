"""Defaults of endpoint slices."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.discovery.v1.types import EndpointPort, EndpointSlice
from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import fill, inside


def _slice(slice_: EndpointSlice) -> EndpointSlice:
    return inside(slice_, ports=_slice_port)


def _slice_port(port: EndpointPort) -> EndpointPort:
    return fill(port, name="", protocol="TCP")


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {EndpointSlice: _slice}
