"""Numbers of OpenFlow 1.3.5 (wire 0x04) and 1.5.1 (wire 0x06), ONF TS-023 and TS-025, as far as used here.

Where the two versions differ both are named; tests compare every number with os-ken's own tables.
"""
from __future__ import annotations

from enum import IntEnum

V13 = 4
V15 = 6
VERSIONS = (V13, V15)

NO_BUFFER = 0xFFFFFFFF
NTR_EXPERIMENTER = 0x154D  # Netronome: the selection_method property that Open vSwitch took over
NTR_SELECTION_METHOD = 1
ALL_TABLES = 0xFF
UNKNOWN_COUNT = 0xFFFFFFFFFFFFFFFF  # "if a counter is not available, its value must be set to -1"


class Message(IntEnum):
    HELLO = 0
    ERROR = 1
    ECHO_REQUEST = 2
    ECHO_REPLY = 3
    EXPERIMENTER = 4
    FEATURES_REQUEST = 5
    FEATURES_REPLY = 6
    GET_CONFIG_REQUEST = 7
    GET_CONFIG_REPLY = 8
    SET_CONFIG = 9
    PACKET_IN = 10
    FLOW_REMOVED = 11
    PORT_STATUS = 12
    PACKET_OUT = 13
    FLOW_MOD = 14
    GROUP_MOD = 15
    PORT_MOD = 16
    TABLE_MOD = 17
    MULTIPART_REQUEST = 18
    MULTIPART_REPLY = 19
    BARRIER_REQUEST = 20
    BARRIER_REPLY = 21
    QUEUE_GET_CONFIG_REQUEST = 22  # 1.3 only
    QUEUE_GET_CONFIG_REPLY = 23
    ROLE_REQUEST = 24
    ROLE_REPLY = 25
    GET_ASYNC_REQUEST = 26
    GET_ASYNC_REPLY = 27
    SET_ASYNC = 28
    METER_MOD = 29
    ROLE_STATUS = 30  # from here on 1.4 and later
    BUNDLE_CONTROL = 33
    BUNDLE_ADD_MESSAGE = 34


class Multipart(IntEnum):
    DESC = 0
    FLOW = 1  # called FLOW_DESC in 1.5
    AGGREGATE = 2
    TABLE = 3
    PORT_STATS = 4
    QUEUE_STATS = 5
    GROUP = 6
    GROUP_DESC = 7
    GROUP_FEATURES = 8
    TABLE_FEATURES = 12
    PORT_DESC = 13
    TABLE_DESC = 14  # from here on 1.5 (1.4)
    QUEUE_DESC = 15
    FLOW_STATS = 17


class Port(IntEnum):
    MAX = 0xFFFFFF00
    IN_PORT = 0xFFFFFFF8
    FLOOD = 0xFFFFFFFB
    ALL = 0xFFFFFFFC
    CONTROLLER = 0xFFFFFFFD
    ANY = 0xFFFFFFFF


class GroupId(IntEnum):
    MAX = 0xFFFFFF00
    ALL = 0xFFFFFFFC
    ANY = 0xFFFFFFFF


class BucketId(IntEnum):
    MAX = 0xFFFFFF00
    FIRST = 0xFFFFFFFD
    LAST = 0xFFFFFFFE
    ALL = 0xFFFFFFFF


class FlowCommand(IntEnum):
    ADD = 0
    MODIFY = 1
    MODIFY_STRICT = 2
    DELETE = 3
    DELETE_STRICT = 4


class FlowFlag(IntEnum):
    SEND_FLOW_REM = 1
    CHECK_OVERLAP = 2
    RESET_COUNTS = 4
    NO_PKT_COUNTS = 8
    NO_BYT_COUNTS = 16


ALL_FLOW_FLAGS = sum(FlowFlag)


class GroupCommand(IntEnum):
    ADD = 0
    MODIFY = 1
    DELETE = 2
    INSERT_BUCKET = 3  # 1.5
    REMOVE_BUCKET = 5  # 1.5


class GroupType(IntEnum):
    ALL = 0
    SELECT = 1
    INDIRECT = 2
    FF = 3


class Instruction(IntEnum):
    GOTO_TABLE = 1
    WRITE_METADATA = 2
    WRITE_ACTIONS = 3
    APPLY_ACTIONS = 4
    CLEAR_ACTIONS = 5
    METER = 6
    STAT_TRIGGER = 7  # 1.5
    EXPERIMENTER = 0xFFFF


class ActionType(IntEnum):
    OUTPUT = 0
    SET_QUEUE = 21
    GROUP = 22
    SET_FIELD = 25
    EXPERIMENTER = 0xFFFF


class Removed(IntEnum):
    """Reasons of FLOW_REMOVED."""

    IDLE_TIMEOUT = 0
    HARD_TIMEOUT = 1
    DELETE = 2
    GROUP_DELETE = 3


class PacketInReason(IntEnum):
    TABLE_MISS = 0  # NO_MATCH in 1.3
    APPLY_ACTION = 1  # ACTION in 1.3
    PACKET_OUT = 5  # 1.4 and later


class Role(IntEnum):
    NOCHANGE = 0
    EQUAL = 1
    MASTER = 2
    SLAVE = 3
