"""Classes on a host's own port, and a weight that changes while packets flow."""
from __future__ import annotations

from dataclasses import replace

from emulator.asic.assemble import assemble
from emulator.asic.datapath import BpfDatapath
from emulator.asic.hosts import shape_hosts
from emulator.asic.switches import BpfSwitches
from emulator.class_specs import parse_classes
from emulator.fabric.build import build
from emulator.fabric.spec import FabricSpec
from emulator.fabric.verify import shaped_rates_bps, wait_until_verified
from tests.asic.fabrics import tables
from tests.asic.traffic import Stream, exchange
from tests.fabric.graphs import leaf_spine

RATE_BPS, BUFFER_BYTES, FRAME = 10e6, 150_000, 1514


def sender() -> dict:
    """One host sends three classes flat out and a strict one at a tenth of its link; then the weights change."""
    table = parse_classes("management=strict+dscp:48,gradients=weight:3,storage=weight:1")
    graph = leaf_spine(1, 1, 2)
    queueing = table.queueing(BUFFER_BYTES, None, FRAME)
    fabric = build(FabricSpec(graph, RATE_BPS, 1500, BUFFER_BYTES, "bpf", "bpf", 1, plain_hosts=False))
    chip = assemble(fabric, queueing)
    shape_hosts(fabric, queueing)
    wait_until_verified(fabric)
    datapath = BpfDatapath(chip)
    for switch in graph.switches:
        datapath.replace_tables(switch.dpid, tables(graph, switch))
    switches = BpfSwitches(fabric, chip, queueing, None, None, table)
    addresses = {host.name: host.ip for host in graph.hosts}

    def shares() -> dict[str, list[int]]:
        streams = [Stream("h1", "h2", dscp=table.dscp(name)) for name in ("gradients", "storage", "best-effort")]
        strict = Stream("h1", "h2", dscp=48, bytes_per_s=RATE_BPS / 80)
        exchange([*streams, strict], addresses, 1.5, settle_s=0.3)
        return {"received": [stream.received for stream in streams], "strict": [strict.sent, strict.received]}

    before = shares()
    switches.change_class("storage", 3)
    after = shares()
    found = {"before": before, "after": after, "faults": switches.link_faults(),
             "weights": [each.weight for each in switches.classes.classes],
             "rates": sorted(set(shaped_rates_bps(fabric).values())),
             "sent": [sent for sent, _ in switches.class_counts()]}
    switches.queueing = replace(queueing)  # what it was before the change: the read-back must see the difference
    return {**found, "faults_of_old": switches.link_faults()}
