"""Usage errors in kubectl's words, with a hint to the help."""

import difflib
import re
from collections.abc import Sequence

from cyclopts import CoercionError, CycloptsError, MissingArgumentError, UnknownCommandError, UnknownOptionError
from cyclopts.exceptions import UnusedCliTokensError

from podfit.cli import exits, render

_MEANT = re.compile(r"Did you mean (?P<option>--?[\w-]+)")
_KINDS = {"int": "not a whole number", "float": "not a number"}


def wrong(
    message: str,
    arguments: Sequence[str],
    verbs: Sequence[str],
    *,
    evidence: Sequence[str] = (),
    fix: Sequence[str] = (),
) -> int:
    """Print the message with the help of the verb that was called; the exit code."""
    see = f"see:  {' '.join(('podfit', *called(arguments, verbs), '--help'))}"
    render.error(message, evidence=evidence, fix=(*fix, see))
    return exits.USAGE


def called(arguments: Sequence[str], verbs: Sequence[str]) -> list[str]:
    """The verb of a command line, `image load` too; nothing when there is none."""
    for words in (arguments[:2], arguments[:1]):
        if " ".join(words) in verbs:
            return list(words)
    return []


def explained(error: CycloptsError, arguments: Sequence[str], verbs: Sequence[str]) -> str:
    """One sentence for what the parser of command lines found."""
    match error:
        case UnknownCommandError():
            return _unknown(arguments, verbs)
        case UnknownOptionError():
            meant = _MEANT.search(str(error))
            flag = error.token.keyword or error.token.value
            return f"unknown flag: {flag}" + (f"; did you mean {meant['option']}?" if meant else "")
        case UnusedCliTokensError():
            return f'unexpected argument "{(error.unused_tokens or [""])[0]}"'
        case MissingArgumentError() if error.argument is not None:
            name = error.keyword or error.argument.name
            if name.startswith("-"):
                return f"flag needs an argument: {name}"
            return f"{name.upper()} is missing: {error.argument.parameter.help or 'an argument is required'}"
        case CoercionError() if error.token is not None and getattr(error.target_type, "__name__", "") in _KINDS:
            kind = _KINDS[getattr(error.target_type, "__name__", "")]
            return f'invalid value "{error.token.value}" for {error.token.keyword}: {kind}'
        case _:
            text = str(error).rstrip(".")
            return text[:1].lower() + text[1:]


def _unknown(arguments: Sequence[str], verbs: Sequence[str]) -> str:
    above = " ".join(called(arguments, verbs))
    word = next((argument for argument in arguments[1 if above else 0 :] if not argument.startswith("-")), "")
    known = [verb.removeprefix(above).strip() for verb in verbs if verb.startswith(above) and verb != above]
    near = difflib.get_close_matches(word, known, n=1)
    program = f"podfit {above}".strip()
    return f'unknown command "{word}" for "{program}"' + (f'; did you mean "{near[0]}"?' if near else "")
