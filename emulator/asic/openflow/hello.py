"""HELLO: agreeing on a version (OpenFlow 1.3.5 and 1.5.1, section 6.3.1)."""
from __future__ import annotations

import struct

from emulator.asic.openflow.constants import VERSIONS
from emulator.asic.openflow.errors import HelloFailed, Refused
from emulator.asic.openflow.wire import TLV, tlvs

_VERSION_BITMAP = 1


def encode_hello() -> bytes:
    """The body of our HELLO: a bitmap of the versions spoken."""
    bitmap = sum(1 << version for version in VERSIONS)
    return TLV.pack(_VERSION_BITMAP, 8) + struct.pack("!I", bitmap)


def negotiate(version: int, body: bytes) -> int:
    """The version to speak with a peer whose HELLO came with header version `version` and `body`.

    The highest bit set in both bitmaps, or without a bitmap the lower of the two header versions.
    Refused with HelloFailed.INCOMPATIBLE where that is none we speak.
    """
    ours = ", ".join({4: "1.3", 6: "1.5"}[number] for number in VERSIONS)
    for kind, element in tlvs(body, HelloFailed.INCOMPATIBLE, aligned=False):
        if kind == _VERSION_BITMAP:
            words = element[TLV.size:]
            first = int.from_bytes(words[:4], "big") if len(words) >= 4 else 0
            common = [number for number in VERSIONS if first >> number & 1]
            if not common:
                raise Refused(HelloFailed.INCOMPATIBLE, f"no version in common, this switch speaks {ours}")
            return max(common)
    agreed = min(version, max(VERSIONS))
    if agreed not in VERSIONS:
        raise Refused(HelloFailed.INCOMPATIBLE, f"wire version {agreed:#04x} of {ours}")
    return agreed
