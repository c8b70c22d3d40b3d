"""What a refused patch says: the patch as upstream prints it, and why its outcome does not fit the kind."""

from typing import Any

from podfit.core.quantity import MALFORMED

_SHAPES = (
    ("Expected `array`, got `object`", "cannot restore slice from map"),
    ("Expected `object`, got `array`", "cannot restore map from slice"),
    (MALFORMED, MALFORMED),
    ("a quantity must be a string or a number", MALFORMED),
)
"""From what the decoder says to upstream's words for it."""


def shown_map(value: Any) -> str:
    """A decoded document as Go prints maps and slices: `map[spec:map[containers:[map[name:c1]]]]`, keys sorted."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{shown_map(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(shown_map, value))}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def unfit(text: str) -> str:
    """Why a document does not fit its kind, in upstream's words where it has any; else ours, which say where."""
    return next((words for said, words in _SHAPES if said in text), text)
