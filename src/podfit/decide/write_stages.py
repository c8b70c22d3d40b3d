"""The stages of a write, in the order in which they come: what the API server runs, and `plan` without one.

Which of them a write has, and what each does, its kind, verb and subresource say. A creation is tracked first of all,
as upstream does it: what admission adds to a new object belongs to who sent it no less than to anybody else.
"""

from enum import Enum


class Stage(Enum):
    AUTHORIZE = "the user may do it, through this subresource"
    DECODE = "the body, or what a patch makes of what is stored, becomes an object; its place and version are compared"
    DEFAULT = "what the object leaves out is filled in"
    MUTATE = "admission changes it: plugins, then mutating webhooks"
    PREPARE = "what may not be written this way stays as it is stored"
    VALIDATE = "422 for what the kind does not allow"
    ADMIT = "403 from plugins, then from validating webhooks"
    TRACK = "the managers of its fields"
    CHARGE = "quotas, in the same transaction as the object"
    ALLOCATE = "addresses and ports of services, until it is stored"
    STORE = "written and answered; not in a dry run"

    __hash__ = object.__hash__  # a member is one object; the hash of Enum is written in Python, and asked for often
