"""Flow rules as a tuple space: what a bpf switch looks up, in OpenFlow's priority order.

Rules that look at the same bits of a packet share a mask; under it a rule is one hash table entry.
Masks are tried by falling highest priority and the search ends when no later one can win, so the result
is the matching rule of highest priority, whatever prefixes overlap (Open vSwitch's classifier; Pfaff et
al., NSDI'15). Pure: `lay_out` makes the records, datapath.py writes them.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from emulator.asic.layout import (KEY, MASK, MAX_CLASSES, MAX_MASKS, NO_QUEUE, RULE, SET_ETH_DST,
                                  SET_ETH_SRC, TO_CONTROLLER)
from emulator.asic.lookup import ETH_IPV4, TCP, UDP
from emulator.asic.pipeline import PipelineActions, PipelineMatch, PipelineRule

_WHOLE = {"in_port": 0xFFFFFFFF, "eth_type": 0xFFFF, "ip_proto": 0xFF, "dscp": 0x3F,
          "l4_src": 0xFFFF, "l4_dst": 0xFFFF}
_NEEDS_IPV4 = ("ipv4_dst", "ipv4_src", "ip_proto", "dscp", "l4_src", "l4_dst")


@dataclass(frozen=True)
class TupleSpace:
    """`masks` in the order of search; keys[i] -> rules[i] the hash table entries, `table` and mask set."""

    masks: np.ndarray
    keys: np.ndarray
    rules: np.ndarray


def key_and_mask(match: PipelineMatch) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(values, masks) in the order ipv4_dst, ipv4_src, in_port, eth_type, ip_proto, dscp, l4_src, l4_dst.

    Raises ValueError for a match that OpenFlow calls inconsistent, or a value outside its field.
    """
    wanted = {name: getattr(match, name) for name in _WHOLE}
    if any(getattr(match, name) is not None for name in _NEEDS_IPV4):
        if wanted["eth_type"] not in (None, ETH_IPV4):
            raise ValueError(f"a match on IPv4 fields cannot have ethertype {wanted['eth_type']:#06x}.")
        wanted["eth_type"] = ETH_IPV4
    if (match.l4_src, match.l4_dst) != (None, None) and match.ip_proto not in (TCP, UDP):
        raise ValueError(f"a match on TCP or UDP ports needs ip_proto 6 or 17, not {match.ip_proto}.")
    values, masks = [], []
    for name in ("ipv4_dst", "ipv4_src"):
        address, length = getattr(match, name) or (0, 0)
        if not (0 <= address <= 0xFFFFFFFF and 0 <= length <= 32):
            raise ValueError(f"{name} {address:#x}/{length} is not an IPv4 prefix.")
        mask = 0xFFFFFFFF << (32 - length) & 0xFFFFFFFF
        values.append(address & mask)
        masks.append(mask)
    for name, whole in _WHOLE.items():
        value = wanted[name]
        if value is not None and not 0 <= value <= whole:
            raise ValueError(f"{name} {value} is outside 0 to {whole}.")
        values.append(value or 0)
        masks.append(0 if value is None else whole)
    return tuple(values), tuple(masks)


def _record(values: Sequence[int], table: int = 0, mask: int = 0) -> tuple[int, ...]:
    ipv4_dst, ipv4_src, in_port, eth_type, ip_proto, dscp, l4_src, l4_dst = values
    return ipv4_dst, ipv4_src, in_port, eth_type, l4_src, l4_dst, ip_proto, dscp, table, mask


def lay_out(rules: Sequence[PipelineRule], table: int, counters: Mapping[int, int],
            ifindexes: Mapping[int, int], groups: Mapping[int, int],
            classes: int = MAX_CLASSES) -> TupleSpace:
    """The tuple space of one switch's rules as table number `table`.

    counters: rule id -> its place in the counts. ifindexes: port number -> ifindex. groups: group id ->
    its place in the groups. classes: how many queues a port has. Of rules with the same match and
    priority the first stands. Raises ValueError for a rule that cannot be carried out, or more than
    MAX_MASKS different masks.
    """
    winners: dict[tuple[int, ...], dict[tuple[int, ...], PipelineRule]] = {}
    for rule in rules:
        values, mask = key_and_mask(rule.match)
        entries = winners.setdefault(mask, {})
        if values not in entries or rule.priority > entries[values].priority:
            entries[values] = rule
    if len(winners) > MAX_MASKS:
        raise ValueError(f"the rules look at {len(winners)} different combinations of fields and prefix "
                         f"lengths; a bpf switch has room for {MAX_MASKS}.")
    ordered = sorted(winners.items(), key=lambda item: -max(r.priority for r in item[1].values()))
    masks = np.zeros(len(ordered), MASK)
    keys, records = [], []
    for number, (mask, entries) in enumerate(ordered):
        masks[number]["key"] = _record(mask)
        masks[number]["priority"] = max(rule.priority for rule in entries.values())
        for values, rule in entries.items():
            keys.append(_record(values, table, number))
            records.append(_rule(rule, counters[rule.id], ifindexes, groups, classes))
    return TupleSpace(masks, np.array(keys, KEY), np.array(records, RULE))


def known_port(ifindexes: Mapping[int, int], port: int) -> int:
    """The ifindex of port number `port`; ValueError if the switch has none."""
    if port not in ifindexes:
        raise ValueError(f"this switch has no port {port}; it has {', '.join(map(str, sorted(ifindexes)))}.")
    return ifindexes[port]


def known_queue(queue: int | None, classes: int) -> int:
    """The class number of a queue, NO_QUEUE for None; ValueError if there is no such class."""
    if queue is None:
        return NO_QUEUE
    if not 0 <= queue < classes:
        there_are = f"queues 0 to {classes - 1}" if classes > 1 else "queue 0 alone without --classes"
        raise ValueError(f"there is no queue {queue}; a port has {there_are}.")
    return queue


def _rule(rule: PipelineRule, counter: int, ifindexes: Mapping[int, int],
          groups: Mapping[int, int], classes: int) -> tuple:
    actions: PipelineActions = rule.actions
    if actions.output is not None and actions.group is not None:
        raise ValueError("a rule of a bpf switch outputs to a port or to a group, not to both.")
    if actions.group is not None and actions.group not in groups:
        raise ValueError(f"there is no group {actions.group}.")
    flags = ((SET_ETH_DST if actions.eth_dst else 0) | (SET_ETH_SRC if actions.eth_src else 0)
             | (TO_CONTROLLER if actions.to_controller else 0))
    output = 0 if actions.output is None else known_port(ifindexes, actions.output)
    return (rule.priority, counter, output, 0 if actions.group is None else groups[actions.group], flags,
            known_queue(actions.queue, classes), tuple(actions.eth_dst or bytes(6)),
            tuple(actions.eth_src or bytes(6)), (0, 0))
