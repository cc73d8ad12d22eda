"""The tuple space finds what OpenFlow's definition says, whatever rules overlap."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.asic.layout import KEY
from tests.asic.packets import ETH_IPV4, TCP, UDP, Packet, matches, winner
from emulator.asic.pipeline import PipelineActions, PipelineMatch, PipelineRule
from emulator.asic.tuplespace import TupleSpace, lay_out

# Few values, so that rules overlap and packets meet them.
ADDRESSES = st.sampled_from([0x0A000001, 0x0A000002, 0x0A000101, 0x0A010001, 0x0B000001])
PREFIXES = st.tuples(ADDRESSES, st.sampled_from([0, 8, 16, 24, 32]))
PORTS = st.sampled_from([0, 80, 5001])


def optional(strategy):
    return st.none() | strategy


@st.composite
def match_of(draw):
    proto = draw(optional(st.sampled_from([1, TCP, UDP])))
    l4 = optional(PORTS) if proto in (TCP, UDP) else st.none()
    ip = draw(st.booleans())
    if not ip:
        return PipelineMatch(in_port=draw(optional(st.integers(1, 2))),
                             eth_type=draw(optional(st.sampled_from([0x0806, ETH_IPV4]))))
    return PipelineMatch(draw(optional(st.integers(1, 2))), draw(optional(st.just(ETH_IPV4))),
                         draw(optional(PREFIXES)), draw(optional(PREFIXES)), proto,
                         draw(optional(st.sampled_from([0, 10, 46]))), draw(l4), draw(l4))


RULE_LISTS = st.lists(st.tuples(st.integers(0, 5), match_of()), max_size=20).map(
    lambda drawn: [PipelineRule(i, priority, match, PipelineActions())
                   for i, (priority, match) in enumerate(drawn)])


@st.composite
def packet_of(draw):
    if draw(st.integers(0, 9)) == 0:
        return Packet(draw(st.integers(1, 2)), 0x0806)
    proto = draw(st.sampled_from([1, TCP, UDP]))
    ports = PORTS if proto in (TCP, UDP) else st.just(0)
    return Packet(draw(st.integers(1, 2)), ETH_IPV4, draw(ADDRESSES), draw(ADDRESSES), proto,
                  draw(st.sampled_from([0, 10, 46])), draw(ports), draw(ports))


def look_up(space: TupleSpace, packet: Packet):
    """The search of bpf/lookup.h, word by word; returns the winning record or None."""
    entries = {key.tobytes(): rule for key, rule in zip(space.keys, space.rules, strict=True)}
    words = np.array([(packet.ipv4_dst, packet.ipv4_src, packet.in_port, packet.eth_type, packet.l4_src,
                       packet.l4_dst, packet.ip_proto, packet.dscp, 0, 0)], KEY).view("<u8")
    best = None
    for number, mask in enumerate(space.masks):
        if best is not None and best["priority"] >= mask["priority"]:
            break
        masked = (words & np.frombuffer(mask["key"].tobytes(), "<u8")).view(KEY)
        masked["table"], masked["mask"] = 7, number
        rule = entries.get(masked.tobytes())
        if rule is not None and (best is None or rule["priority"] > best["priority"]):
            best = rule
    return best


@given(RULE_LISTS, st.lists(packet_of(), min_size=1, max_size=10))
def test_the_highest_priority_that_matches_wins(rules, packets):
    counters = {rule.id: rule.id for rule in rules}
    space = lay_out(rules, 7, counters, {}, {})
    for packet in packets:
        found, expected = look_up(space, packet), winner(rules, packet)
        if expected is None:
            assert found is None
            continue
        assert found is not None and found["priority"] == expected.priority
        assert matches(rules[found["counter"]].match, packet)


def test_a_rule_is_shadowed_by_the_same_match_of_higher_priority():
    match = PipelineMatch(ipv4_dst=(0x0A000001, 32))
    rules = [PipelineRule(1, 5, match, PipelineActions()), PipelineRule(2, 9, match, PipelineActions())]
    space = lay_out(rules, 0, {1: 11, 2: 22}, {}, {})
    assert [rule["counter"] for rule in space.rules] == [22]


@pytest.mark.parametrize("match, sentence", [
    (PipelineMatch(eth_type=0x0806, ipv4_dst=(1, 32)), "cannot have ethertype 0x0806"),
    (PipelineMatch(l4_dst=80), "needs ip_proto 6 or 17"),
    (PipelineMatch(dscp=64), "dscp 64 is outside 0 to 63"),
    (PipelineMatch(ipv4_dst=(1, 33)), "is not an IPv4 prefix"),
])
def test_what_cannot_match_is_refused(match, sentence):
    with pytest.raises(ValueError, match=sentence):
        lay_out([PipelineRule(1, 1, match, PipelineActions())], 0, {1: 0}, {}, {})


def test_more_masks_than_there_is_room_for_are_refused():
    rules = [PipelineRule(n, 1, PipelineMatch(ipv4_dst=(0, n)), PipelineActions()) for n in range(1, 33)]
    lay_out(rules, 0, {n: n for n in range(1, 34)}, {}, {})
    rules.append(PipelineRule(33, 1, PipelineMatch(in_port=1), PipelineActions()))
    with pytest.raises(ValueError, match="room for 32"):
        lay_out(rules, 0, {n: n for n in range(1, 34)}, {}, {})


def test_a_port_of_one_class_has_one_queue():
    rule = PipelineRule(1, 1, PipelineMatch(), PipelineActions(output=1, queue=5))
    assert lay_out([rule], 0, {1: 0}, {1: 10}, {}).rules[0]["queue"] == 5
    with pytest.raises(ValueError, match="no queue 5; a port has queue 0 alone without --classes"):
        lay_out([rule], 0, {1: 0}, {1: 10}, {}, classes=1)


@pytest.mark.parametrize("actions, sentence", [
    (PipelineActions(output=9), "no port 9; it has 1, 2"),
    (PipelineActions(group=4), "no group 4"),
    (PipelineActions(output=1, group=3), "not to both"),
    (PipelineActions(output=1, queue=8), "no queue 8"),
])
def test_what_cannot_be_done_is_refused(actions, sentence):
    with pytest.raises(ValueError, match=sentence):
        lay_out([PipelineRule(1, 1, PipelineMatch(), actions)], 0, {1: 0}, {1: 10, 2: 11}, {3: 1})
