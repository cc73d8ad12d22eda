"""Actions and instructions, whose bytes are the same in OpenFlow 1.3 and 1.5, to PipelineActions.

The pipeline rewrites first and sends once; an action list that asks for more, or in another order,
is refused rather than bent.
"""
from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from emulator.asic.openflow.constants import V13, ActionType, Instruction, Port
from emulator.asic.openflow.errors import BadAction, BadInstruction, Refused
from emulator.asic.openflow.oxm import BASIC_CLASS, ETH_DST, ETH_SRC, OXM_HEADER
from emulator.asic.openflow.wire import tlvs, unpack
from emulator.asic.pipeline import PipelineActions

QUEUES = 8
_OUTPUT = struct.Struct("!HHIH6x")
_WORD = struct.Struct("!HHI")
_INSTRUCTION_HEADER_BYTES = 8
# Far above what one pass can use, and what statistics give back still fits a message.
MAX_INSTRUCTION_BYTES = 512


@dataclass(frozen=True)
class Output:
    """Send to a port, or to the controller (whole frames always: the switch buffers none)."""

    port: int


@dataclass(frozen=True)
class ToGroup:
    group: int


@dataclass(frozen=True)
class SetQueue:
    queue: int


@dataclass(frozen=True)
class SetMac:
    """`attribute` is 'eth_dst' or 'eth_src'."""

    attribute: str
    mac: bytes


Action = Output | ToGroup | SetQueue | SetMac


def decode_actions(data: bytes, version: int) -> tuple[Action, ...]:
    """An action list; Refused for anything but output, group, set_queue and set_field of a MAC."""
    return tuple(_decode(kind, body, version) for kind, body in tlvs(data, BadAction.BAD_LEN, aligned=True))


def _decode(kind: int, data: bytes, version: int) -> Action:
    if kind == ActionType.OUTPUT:
        if len(data) != _OUTPUT.size:
            raise Refused(BadAction.BAD_LEN, f"output action of {len(data)} bytes")
        return Output(_OUTPUT.unpack(data)[2])
    if kind in (ActionType.GROUP, ActionType.SET_QUEUE):
        if len(data) != _WORD.size:
            raise Refused(BadAction.BAD_LEN, f"action {kind} of {len(data)} bytes")
        value = _WORD.unpack(data)[2]
        if kind == ActionType.GROUP:
            return ToGroup(value)
        if value >= QUEUES:
            raise Refused(BadAction.BAD_QUEUE, f"queue {value} of 0-{QUEUES - 1}")
        return SetQueue(value)
    if kind == ActionType.SET_FIELD:
        return _decode_set_field(data, version)
    if kind == ActionType.EXPERIMENTER:
        raise Refused(BadAction.BAD_EXPERIMENTER, "no experimenter actions")
    raise Refused(BadAction.BAD_TYPE, f"no action of type {kind}")


def _decode_set_field(data: bytes, version: int) -> Action:
    oxm_class, tag, length = unpack(OXM_HEADER, data, 4, BadAction.BAD_SET_LEN)
    number, masked = tag >> 1, tag & 1
    if oxm_class != BASIC_CLASS or number not in (ETH_DST, ETH_SRC):
        raise Refused(BadAction.BAD_SET_TYPE, f"set_field of OXM field {number}, class {oxm_class:#x}")
    if masked:
        code = BadAction.BAD_SET_TYPE if version == V13 else BadAction.BAD_SET_MASK
        raise Refused(code, "set_field with a mask")
    if length != 6 or len(data) != 16:
        raise Refused(BadAction.BAD_SET_LEN, f"a MAC of {length} bytes")
    return SetMac("eth_dst" if number == ETH_DST else "eth_src", data[8:14])


def decode_instructions(data: bytes, version: int) -> PipelineActions:
    """What a flow entry's instructions come to in a pipeline of one table."""
    if len(data) > MAX_INSTRUCTION_BYTES:
        raise Refused(BadAction.TOO_MANY, f"{len(data)} bytes of instructions")
    applied: tuple[Action, ...] = ()
    written: tuple[Action, ...] = ()
    seen: set[int] = set()
    for kind, body in tlvs(data, BadInstruction.BAD_LEN, aligned=True):
        if kind in seen:
            code = BadInstruction.UNSUP_INST if version == V13 else BadInstruction.DUP_INST
            raise Refused(code, f"instruction {kind} stands twice")
        seen.add(kind)
        if kind in (Instruction.APPLY_ACTIONS, Instruction.WRITE_ACTIONS):
            if len(body) < _INSTRUCTION_HEADER_BYTES:
                raise Refused(BadInstruction.BAD_LEN, f"instruction {kind} of {len(body)} bytes")
            actions = decode_actions(body[_INSTRUCTION_HEADER_BYTES:], version)
            if kind == Instruction.APPLY_ACTIONS:
                applied = actions
            else:
                written = _action_set(actions)
        elif kind == Instruction.CLEAR_ACTIONS:
            if len(body) != _INSTRUCTION_HEADER_BYTES:
                raise Refused(BadInstruction.BAD_LEN, f"clear-actions of {len(body)} bytes")
        elif kind == Instruction.GOTO_TABLE:
            raise Refused(BadInstruction.BAD_TABLE_ID, "goto-table in a pipeline of one table")
        elif kind == Instruction.EXPERIMENTER:
            raise Refused(BadInstruction.BAD_EXPERIMENTER, "no experimenter instructions")
        elif kind in (Instruction.WRITE_METADATA, Instruction.METER, Instruction.STAT_TRIGGER):
            raise Refused(BadInstruction.UNSUP_INST, f"no instruction {Instruction(kind).name}")
        else:
            raise Refused(BadInstruction.UNKNOWN_INST, f"no instruction of type {kind}")
    return to_pipeline(applied + written)


def _action_set(actions: Sequence[Action]) -> tuple[Action, ...]:
    """Write-actions fill a set: the last of a kind stays, rewrites run first, a group beats an output."""
    macs = {action.attribute: action for action in actions if isinstance(action, SetMac)}
    queues = [action for action in actions if isinstance(action, SetQueue)]
    groups = [action for action in actions if isinstance(action, ToGroup)]
    outputs = [action for action in actions if isinstance(action, Output)]
    return (*macs.values(), *queues[-1:], *(groups[-1:] or outputs[-1:]))


def to_pipeline(actions: Sequence[Action]) -> PipelineActions:
    """One pass of the pipeline: rewrites, then at most one output or group, and a copy upwards.

    A port's existence is not looked at here. Refused with TOO_MANY for a second output,
    UNSUPPORTED_ORDER for a rewrite behind one.
    """
    values: dict[str, object] = {}
    sent = False
    for action in actions:
        if isinstance(action, (SetMac, SetQueue)):
            if sent:
                raise Refused(BadAction.UNSUPPORTED_ORDER, "a rewrite behind an output")
            if isinstance(action, SetMac):
                values[action.attribute] = action.mac
            else:
                values["queue"] = action.queue
            continue
        sent = True
        if isinstance(action, Output) and action.port == Port.CONTROLLER:
            values["to_controller"] = True
        elif "output" in values or "group" in values:
            raise Refused(BadAction.TOO_MANY, "more than one output or group")
        elif isinstance(action, ToGroup):
            values["group"] = action.group
        else:
            values["output"] = action.port
    return PipelineActions(**values)
