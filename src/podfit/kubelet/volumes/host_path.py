"""hostPath types: the check, and the making of what is missing where the type says so."""

from collections.abc import Callable, Mapping
from pathlib import Path

_CHECKS: Mapping[str, tuple[Callable[[Path], bool], str]] = {
    "Directory": (Path.is_dir, "a directory"),
    "DirectoryOrCreate": (Path.is_dir, "a directory"),
    "File": (Path.is_file, "a file"),
    "FileOrCreate": (Path.is_file, "a file"),
    "Socket": (Path.is_socket, "a socket file"),
    "CharDevice": (Path.is_char_device, "a character device"),
    "BlockDevice": (Path.is_block_device, "a block device"),
}


def prepare(path: Path, kind: str) -> str:
    """What is wrong, in upstream's words; empty when the path may be mounted. Raises OSError if it cannot be made."""
    if not kind:
        return ""
    if kind == "DirectoryOrCreate" and not path.exists():
        path.mkdir(mode=0o755, parents=True)
    if kind == "FileOrCreate" and not path.exists():
        path.touch(mode=0o644)
    if kind not in _CHECKS:
        return f"hostPath type check failed: {kind} is an invalid volume type"
    check, what = _CHECKS[kind]
    return "" if check(path) else f"hostPath type check failed: {path} is not {what}"
