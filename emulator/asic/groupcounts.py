"""How many packets select groups sent out of each port, by their buckets' own counters."""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from controllers.tables import Output, SwitchTables
from emulator.asic.chip import Chip
from emulator.asic.layout import COUNT, GROUP


def fed_by_groups_alone(tables: Iterable[SwitchTables]) -> frozenset[tuple[int, int]]:
    """(dpid, port number) of the ports that buckets name and no rule does."""
    found: set[tuple[int, int]] = set()
    for table in tables:
        actions = [action for rule in table.flows for action in rule.actions]
        by_rule = {action.port for action in actions if isinstance(action, Output)}
        found |= {(table.dpid, bucket.port) for group in table.groups for bucket in group.buckets
                  if bucket.port not in by_rule}
    return frozenset(found)


def group_packets(chip: Chip, ports: frozenset[tuple[int, int]]) -> Mapping[str, int]:
    """Interface -> packets since the start, for these ports; exact while no switch's tables change."""
    groups, counts = chip.maps["groups"].array(GROUP), chip.maps["bucket_counts"].array(COUNT)
    counts = counts.reshape(-1, len(chip.switches) * chip.sizes.buckets)["packets"]
    found: dict[str, int] = {}
    for index, switch in enumerate(chip.switches):
        numbers = {port.ifindex: port.name for port in switch.ports if (switch.dpid, port.number) in ports}
        first = 1 + index * chip.sizes.groups
        # a bucket that stays keeps its counter, so each counter is looked at once
        counters = {int(bucket["counter"]): int(bucket["port"])
                    for group in groups[first:first + chip.sizes.groups]
                    for bucket in group["bucket"][:int(group["buckets"])]}
        found |= dict.fromkeys(numbers.values(), 0)
        for counter, ifindex in counters.items():
            if ifindex in numbers:
                found[numbers[ifindex]] += int(counts[:, counter].sum())
    return found
