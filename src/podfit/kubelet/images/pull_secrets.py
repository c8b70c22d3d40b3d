"""The imagePullSecrets of a pod, read when an image of it has to be pulled."""

from collections.abc import Callable

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.core.errors import ApiError
from podfit.decide.pod.pull_credentials import Credential, credentials
from podfit.kubelet.sources.lookup import Lookup, Missing


class PullSecrets(msgspec.Struct, frozen=True):
    lookup: Lookup

    async def credentials(self, pod: Pod, image: str, tell: Callable[[str, str, str], None]) -> tuple[Credential, ...]:
        """To be shown to the image's registry. A secret that cannot be had is told, and done without."""
        found, absent = [], []
        for reference in pod.spec.image_pull_secrets:
            try:
                found.append(await self.lookup.read("secret", pod.metadata.namespace, reference.name))
            except (Missing, ApiError):
                absent.append(reference.name)
        if absent:
            names = ", ".join(absent)
            text = (
                f"Unable to retrieve some image pull secrets ({names}); attempting to pull the image may not succeed."
            )
            tell("Warning", "FailedToRetrieveImagePullSecret", text)
        return credentials(image, found)
