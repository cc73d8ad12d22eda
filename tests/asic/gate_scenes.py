"""The gate over bpf switches: probes of one host to several others."""
from __future__ import annotations

from dataclasses import asdict

from emulator.errors import EmulatorError
from emulator.fabric.gate import Probe, prove
from tests.asic.fabrics import lab, udp
from tests.fabric.graphs import leaf_spine

FIRST_PORT, PORTS = 10_000, 4


def one_source() -> dict:
    """Two destinations are probed from the same ports of one host; then somebody holds one of the ports."""
    made = lab(leaf_spine(2, 1, 2))
    probes = [Probe("h1", destination, FIRST_PORT + number)
              for destination in ("h3", "h4") for number in range(PORTS)]
    proof, refused = prove(made.fabric, probes), ""
    with udp("h1", FIRST_PORT + 1):
        try:
            prove(made.fabric, probes)
        except EmulatorError as error:
            refused = str(error)
    return {"proof": asdict(proof), "refused": refused}
