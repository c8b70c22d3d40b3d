"""CSINode: the CSI drivers that are registered on a node."""

from collections.abc import Sequence

from msgspec.structs import replace

from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import immutable
from podfit.api.storage.v1.types import CSINode, CSINodeDriver
from podfit.core.fields import FieldError, duplicate, invalid, required, too_long

LONGEST_NAME = 63
LONGEST_ID = 192


def validate_csi_node(node: CSINode) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, driver in enumerate(node.spec.drivers or ()):
        path = f"spec.drivers[{index}]"
        errors += _name(driver.name, f"{path}.name") + _node_id(driver.node_id, f"{path}.nodeID")
        count = driver.allocatable.count if driver.allocatable else None
        if count is not None and count < 0:
            errors.append(invalid(f"{path}.allocatable.count", count, "must be greater than or equal to 0"))
        if driver.name in seen:
            errors.append(duplicate(f"{path}.name", driver.name))
        seen.add(driver.name)
        errors += _topology(driver.topology_keys or (), path)
    return errors


def _name(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = [too_long(path, LONGEST_NAME)] if len(name) > LONGEST_NAME else []
    return errors + [invalid(path, name, text) for text in names.dns_subdomain(name.lower())]


def _node_id(node_id: str, path: str) -> list[FieldError]:
    if not node_id:
        return [required(path)]
    too_many = len(node_id.encode()) > LONGEST_ID
    return [invalid(path, node_id, f"must be {LONGEST_ID} characters or less")] if too_many else []


def _topology(keys: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for key in keys:
        if not key:
            errors.append(required(path))
        if key in seen:
            errors.append(duplicate(path, key))
        seen.add(key)
        errors += [invalid(path, key, text) for text in names.qualified(key)]
    return errors


def validate_csi_node_update(new: CSINode, old: CSINode) -> list[FieldError]:
    """A driver that is registered already keeps what it said, but for how many volumes it can attach."""
    errors = validate_csi_node(new)
    before = {driver.name: driver for driver in (old.spec.drivers or ())}
    for driver in new.spec.drivers or ():
        if driver.name in before:
            errors += immutable(_fixed(driver), _fixed(before[driver.name]), "spec.drivers")
    return errors


def _fixed(driver: CSINodeDriver) -> CSINodeDriver:
    return replace(driver, allocatable=None)
