"""ROLE_REQUEST: who of several controllers may change things (1.3.5 section 6.3.6, 1.5.1 section 6.3.7)."""
from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from emulator.asic.openflow.constants import V13, V15, Message, Role
from emulator.asic.openflow.errors import Refused, RoleRequestFailed
from emulator.asic.openflow.wire import unpack

if TYPE_CHECKING:
    from emulator.asic.openflow.session import Session

_ROLE_13 = struct.Struct("!I4xQ")
_ROLE_15 = struct.Struct("!IH2xQ")
_ROLE_STATUS = struct.Struct("!IB3xQ")
_MASTER_REQUEST = 0
_NO_GENERATION = 0xFFFFFFFFFFFFFFFF
_NO_SHORT_ID = 0


def change_role(session: Session, body: bytes) -> bytes:
    """Carry out a role request and give the body of its reply."""
    if session.version == V13:
        role, generation = unpack(_ROLE_13, body)
    else:
        role, _, generation = unpack(_ROLE_15, body)
    if role > Role.SLAVE:
        raise Refused(RoleRequestFailed.BAD_ROLE, f"no role {role}")
    switch = session.switch
    if role in (Role.MASTER, Role.SLAVE):
        # Generations are compared on a circle: a difference in the upper half is a step back.
        if switch.generation_id is not None and (generation - switch.generation_id) % 2**64 >= 2**63:
            raise Refused(RoleRequestFailed.STALE, f"generation {generation} after {switch.generation_id}")
        switch.generation_id = generation
    if role == Role.MASTER:
        for other in switch.listeners:
            if other is not session and other.role == Role.MASTER:
                _demote(other, generation)
    if role != Role.NOCHANGE:
        session.role = role
    known = _NO_GENERATION if switch.generation_id is None else switch.generation_id
    if session.version == V13:
        return _ROLE_13.pack(session.role, known)
    return _ROLE_15.pack(session.role, _NO_SHORT_ID, known)


def _demote(session: Session, generation: int) -> None:
    """There is one master; 1.4 and later tell the old one."""
    session.role = Role.SLAVE
    if session.version == V15:
        session.send(Message.ROLE_STATUS, 0, _ROLE_STATUS.pack(Role.SLAVE, _MASTER_REQUEST, generation))
