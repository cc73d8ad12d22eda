"""The relay's process: started over the links of a fabric with a delay, its counters read while it runs."""
from __future__ import annotations

import math
import mmap
import os
import subprocess
from collections.abc import Iterable

import numpy as np

from emulator import netns
from emulator.delay.build import require_relay
from emulator.delay.record import COUNTERS, DelayRecord, record
from emulator.errors import BadInput, EmulatorError, MachineLacks
from emulator.fabric.spec import ETHERNET_BYTES, FabricSpec, Port
from emulator.fabric.veths import DELAY_NETNS
from emulator.readable import can_be_read

LARGEST_DELAY_S = 0.1
_BLOCK_BYTES = 1 << 16  # as in relay.c
_HEADER_BYTES = 96  # of a slot: struct tpacket2_hdr, sockaddr_ll, alignment (net/packet/af_packet.c)
_SMALL_PACKETS = 4  # slots for each full frame under way: acknowledgements take one each
_SLOTS_A_PORT = 64
_MOST_BYTES = 1 << 30
_READY_S = 10.0


def slot_bytes(mtu: int) -> int:
    """A power of two, so that blocks are filled."""
    return 1 << math.ceil(math.log2(mtu + ETHERNET_BYTES + _HEADER_BYTES))


def slots(rates_bps: Iterable[float], delay_s: float, mtu: int) -> int:
    """Room for all packets under way when every direction of every link (`rates_bps`) is full."""
    rates = list(rates_bps)
    frames = sum(rates) * delay_s / 8 / (mtu + ETHERNET_BYTES)
    per_block = _BLOCK_BYTES // slot_bytes(mtu)
    return math.ceil((_SMALL_PACKETS * frames + _SLOTS_A_PORT * len(rates)) / per_block) * per_block


def check(delay_s: float, rates_bps: Iterable[float], mtu: int) -> None:
    """Raise BadInput for a delay that the relay cannot hold."""
    if delay_s > LARGEST_DELAY_S:
        raise BadInput(f"--delay {delay_s:g}s is more than {LARGEST_DELAY_S:g}s a link; TCP's timers would "
                       "fire first.")
    size = slots(rates_bps, delay_s, mtu) * slot_bytes(mtu)
    if size > _MOST_BYTES:
        raise BadInput(f"--delay {delay_s:g}s keeps up to {size / 1e9:.1f} GB under way at this rate; "
                       f"lower --rate or --delay to stay below {_MOST_BYTES / 1e9:.1f} GB.")


class Relay:
    """The running relay of a fabric whose links have a delay; it dies with the process that started it."""

    WAY = "relay"

    def __init__(self, spec: FabricSpec, ports: Iterable[Port]) -> None:
        self._delay_s = spec.delay_s
        room = slots([port.rate_bps for port in ports], spec.delay_s, spec.mtu)
        memory = os.memfd_create("relay")
        os.ftruncate(memory, COUNTERS.itemsize)
        self._counters = np.frombuffer(mmap.mmap(memory, COUNTERS.itemsize), COUNTERS)
        try:
            with netns.entered(DELAY_NETNS):
                self._process = subprocess.Popen(
                    [str(require_relay()), str(memory), str(round(spec.delay_s * 1e9)), str(room),
                     str(slot_bytes(spec.mtu)), str(os.getpid())],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    pass_fds=[memory])
        finally:
            os.close(memory)
        readable = can_be_read(self._process.stdout, _READY_S)
        if not readable or self._process.stdout.readline() != b"ready\n":
            said = self._end()
            kind = MachineLacks if self._process.returncode == MachineLacks.exit_status else EmulatorError
            raise kind(said or f"The relay of --delay did not start (status {self._process.returncode}).")

    def counters(self) -> np.void:
        """What it counted since its start (COUNTERS), a copy."""
        return self._counters[0].copy()

    def since(self, before: np.void) -> DelayRecord:
        """What it did since `before`."""
        return record(self._delay_s, before, self.counters(), self.failure() or "")

    def failure(self) -> str | None:
        """None while it runs, else a sentence."""
        status = self._process.poll()
        if status is None:
            return None
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"The relay of --delay {how}: no link carried a packet from then on."

    def stop(self) -> None:
        """End it."""
        self._end()

    def _end(self) -> str:
        self._process.kill()
        return self._process.communicate()[1].decode(errors="replace").strip()
