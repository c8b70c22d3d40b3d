"""Server versions: what API servers older than 1.36 do differently with a resize, as far as a plan needs it.

Everything is derived from the minor version, which `/version` tells to everybody; the gates of a cluster cannot be
read, so a release in which the feature is alpha may still refuse what is planned, and the plan says so.
"""

import re

import msgspec

from podfit.core.features import FeatureGates

FIRST, NEWEST = 27, 36
SUBRESOURCE, CONDITIONS, LEVELS, ADMITS = 32, 33, 36, 36


class Age(msgspec.Struct, frozen=True):
    """A server's release; `minor` of an unreadable version is taken for the newest known."""

    minor: int = NEWEST
    version: str = ""

    @property
    def resizes(self) -> bool:
        return self.minor >= FIRST

    @property
    def is_podfit(self) -> bool:
        """podfit's own API server, on which no Deployment starts anything."""
        return "+podfit" in self.version

    @property
    def has_subresource(self) -> bool:
        """Before, resources were changed on the pod itself."""
        return self.minor >= SUBRESOURCE

    @property
    def has_conditions(self) -> bool:
        """Before, `status.resize` was all that a node told."""
        return self.minor >= CONDITIONS

    @property
    def lowers_memory(self) -> bool:
        """1.33 refused to lower a memory limit unless its policy was RestartContainer."""
        return self.minor != CONDITIONS

    @property
    def checks_capacity(self) -> bool:
        """Before, a size beyond the node was stored and then called Infeasible."""
        return self.minor >= ADMITS

    @property
    def gates(self) -> FeatureGates:
        """The defaults of 1.36 without what this release did not have."""
        if self.minor >= LEVELS:
            return FeatureGates()
        return FeatureGates(
            {"InPlacePodLevelResourcesVerticalScaling": False, "InPlacePodVerticalScalingInitContainers": False}
        )

    @property
    def caveat(self) -> str:
        """What the user has to know about all that is said; empty from 1.33 on, where the feature is on by default."""
        if not self.resizes:
            return f"in 1.{self.minor} running pods cannot be resized; 1.27 is the first that can"
        if self.minor >= CONDITIONS:
            return ""
        return f"in 1.{self.minor} in-place resize is alpha, off unless somebody set the gate InPlacePodVerticalScaling"


def age_of(minor: str, version: str) -> Age:
    """From the fields of `/version`; vendors write `36+`."""
    digits = re.match(r"\d+", minor)
    return Age(int(digits[0]) if digits else NEWEST, version)
