"""Messages of operating system errors, without their numbers."""


def plainly(error: Exception, *, about: str = "") -> str:
    """`No such file or directory: FILE`; the file is left out where it is what the sentence is `about` already."""
    if not isinstance(error, OSError) or not error.strerror or error.strerror.startswith("["):
        return str(error)
    named = str(error.filename) if error.filename is not None else ""
    return f"{error.strerror}: {named}" if named and named != about else error.strerror
