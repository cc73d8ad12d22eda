"""OFPT_ERROR: what a switch answers when it does not do what it was told.

Each error type is an enumeration of its codes; the class of a code gives the type on the wire.
"""
from __future__ import annotations

from enum import IntEnum


class HelloFailed(IntEnum):
    INCOMPATIBLE = 0


class BadRequest(IntEnum):
    BAD_VERSION = 0
    BAD_TYPE = 1
    BAD_MULTIPART = 2
    BAD_EXPERIMENTER = 3
    BAD_LEN = 6
    BUFFER_UNKNOWN = 8
    BAD_TABLE_ID = 9
    IS_SLAVE = 10
    BAD_PORT = 11
    BAD_PACKET = 12
    MULTIPART_BUFFER_OVERFLOW = 13


class BadAction(IntEnum):
    BAD_TYPE = 0
    BAD_LEN = 1
    BAD_EXPERIMENTER = 2
    BAD_OUT_PORT = 4
    TOO_MANY = 7
    BAD_QUEUE = 8
    BAD_OUT_GROUP = 9
    UNSUPPORTED_ORDER = 11
    BAD_SET_TYPE = 13
    BAD_SET_LEN = 14
    BAD_SET_MASK = 16  # 1.5


class BadInstruction(IntEnum):
    UNKNOWN_INST = 0
    UNSUP_INST = 1
    BAD_TABLE_ID = 2
    BAD_EXPERIMENTER = 5
    BAD_LEN = 7
    DUP_INST = 9  # 1.4 and later


class BadMatch(IntEnum):
    BAD_TYPE = 0
    BAD_LEN = 1
    BAD_WILDCARDS = 5
    BAD_FIELD = 6
    BAD_VALUE = 7
    BAD_MASK = 8
    BAD_PREREQ = 9
    DUP_FIELD = 10


class FlowModFailed(IntEnum):
    UNKNOWN = 0
    BAD_TABLE_ID = 2
    OVERLAP = 3
    BAD_COMMAND = 6
    BAD_FLAGS = 7


class GroupModFailed(IntEnum):
    GROUP_EXISTS = 0
    INVALID_GROUP = 1
    OUT_OF_BUCKETS = 4
    CHAINING_UNSUPPORTED = 5
    WATCH_UNSUPPORTED = 6
    UNKNOWN_GROUP = 8
    BAD_TYPE = 10
    BAD_COMMAND = 11
    BAD_BUCKET = 12
    BAD_WATCH = 13
    UNKNOWN_BUCKET = 15  # 1.5
    BUCKET_EXISTS = 16  # 1.5


class PortModFailed(IntEnum):
    BAD_PORT = 0
    BAD_HW_ADDR = 1
    BAD_CONFIG = 2
    BAD_ADVERTISE = 3


class TableModFailed(IntEnum):
    BAD_TABLE = 0
    BAD_CONFIG = 1


class QueueOpFailed(IntEnum):
    BAD_PORT = 0
    BAD_QUEUE = 1


class SwitchConfigFailed(IntEnum):
    BAD_FLAGS = 0


class RoleRequestFailed(IntEnum):
    STALE = 0
    BAD_ROLE = 2


class MeterModFailed(IntEnum):
    OUT_OF_METERS = 10


class TableFeaturesFailed(IntEnum):
    EPERM = 5


class BadProperty(IntEnum):
    """1.4 and later."""

    BAD_TYPE = 0
    BAD_LEN = 1
    BAD_VALUE = 2
    DUP_TYPE = 4
    BAD_EXPERIMENTER = 5
    BAD_EXP_TYPE = 6
    BAD_EXP_VALUE = 7


class AsyncConfigFailed(IntEnum):
    """1.4 and later."""

    UNSUPPORTED = 1


ERROR_TYPES: dict[type[IntEnum], int] = {
    HelloFailed: 0, BadRequest: 1, BadAction: 2, BadInstruction: 3, BadMatch: 4, FlowModFailed: 5,
    GroupModFailed: 6, PortModFailed: 7, TableModFailed: 8, QueueOpFailed: 9, SwitchConfigFailed: 10,
    RoleRequestFailed: 11, MeterModFailed: 12, TableFeaturesFailed: 13, BadProperty: 14,
    AsyncConfigFailed: 15}


class Refused(Exception):
    """A message that the switch does not carry out: the code for the wire, a sentence for the log."""

    def __init__(self, code: IntEnum, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code

    @property
    def type(self) -> int:
        """The ofp_error_type number."""
        return ERROR_TYPES[type(self.code)]
