"""What one hop through a bpf switch costs in CPU time, with and without telemetry.

    sudo .venv/bin/python -m benchmarks.hop_cost [--repeat 5]

One host sends datagrams of 1500 bytes to another over a chain of 1 and of 5 switches whose links (20
Gb/s) never fill, so that no timer is involved: what a packet more costs over the longer chain is four
hops of look-up, HTB, queue and wire. CPU time of the core that sends and forwards; the least of all
repeats, because other work on the machine only ever adds.
"""
from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import tempfile
import time
from pathlib import Path

from emulator.errors import EmulatorError
from emulator.sandbox.enter import payload, run_in_sandbox
from tests.asic.fabrics import chain, chain_tables, lab, udp

LENGTHS = (1, 5)
RATE_BPS, BUFFER_BYTES, PAYLOAD_BYTES = 20e9, 4_000_000, 1472
SLICE_S, SLICES = 0.05, 40
_SO_SNDBUFFORCE = 32


def measure(length: int, telemetry: bool) -> float:
    """Inside a sandbox: seconds of CPU time a packet from host to host over `length` switches."""
    made = lab(chain(length), RATE_BPS, buffer_bytes=BUFFER_BYTES, telemetry=telemetry,
               tables_of=chain_tables)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    source, sink = udp("h1"), udp("h2", 7000)
    source.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, 8 << 20)
    source.connect((made.fabric.site["h2"].ip, 7000))
    data, last, best_s = bytes(PAYLOAD_BYTES), made.ifindex(f"s{length}-eth2"), float("inf")
    for _ in range(SLICES):
        sent, before = 0, _forwarded(made, last)
        end_s, cpu_s = time.perf_counter() + SLICE_S, time.process_time()
        while time.perf_counter() < end_s:
            for _ in range(64):
                source.send(data)
            sent += 64
        best_s = min(best_s, (time.process_time() - cpu_s) / sent)
        if _forwarded(made, last) - before != sent:
            raise EmulatorError("Not every packet was forwarded; the cost of a hop would be wrong.")
    sink.close()
    return best_s


def _forwarded(made, ifindex: int) -> int:
    made.chip.observe(ifindex)
    return int(made.chip.queue(ifindex)["sent_packets"])


def hops(repeat: int) -> tuple[float, float]:
    """Seconds of CPU time of a hop, without and with telemetry: the least of `repeat` fabrics each."""
    least = packets(repeat)
    short, long = LENGTHS
    plain, seen = ((least[long, telemetry] - least[short, telemetry]) / (long - short)
                   for telemetry in (False, True))
    return plain, seen


def packets(repeat: int) -> dict[tuple[int, bool], float]:
    """(switches, telemetry) -> seconds of CPU time of a packet, the least of `repeat` fabrics."""
    least: dict[tuple[int, bool], float] = {}
    with tempfile.TemporaryDirectory() as place:
        result = Path(place, "result.json")
        for _ in range(repeat):
            for case in ((length, telemetry) for length in LENGTHS for telemetry in (False, True)):
                status = run_in_sandbox([sys.executable, "-m", "benchmarks.hop_cost"],
                                        {"case": case, "result": str(result)}, deadline_s=60, keep=[place])
                if status:
                    raise EmulatorError(f"Measuring over {case[0]} switches ended with status {status}.")
                least[case] = min(json.loads(result.read_text()), least.get(case, float("inf")))
    return least


def main() -> int:
    """Print the cost of a hop with telemetry off and on."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5, help="fabrics to build for each figure (default 5)")
    try:
        plain, seen = hops(parser.parse_args().repeat)
    except EmulatorError as error:
        print(f"benchmarks.hop_cost: {error}", file=sys.stderr)
        return error.exit_status
    more = (seen - plain) / plain
    print(f"a hop: {plain * 1e9:.0f} ns; with telemetry {seen * 1e9:.0f} ns, {more:.0%} more")
    return 0


if __name__ == "__main__":
    if "EMULATOR_PAYLOAD_FD" in os.environ:
        asked = json.loads(payload())
        Path(asked["result"]).write_text(json.dumps(measure(*asked["case"])))
        sys.exit(0)
    sys.exit(main())
