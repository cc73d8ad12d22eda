"""Netlink's framing: what is packed is what is read."""
from __future__ import annotations

import errno
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.fabric import rtnl
from emulator.netlink import Netlink, NetlinkError, attribute, attributes, nest

KINDS = st.integers(1, 200)
VALUES = st.binary(max_size=40)


@given(st.dictionaries(KINDS, VALUES, max_size=8), KINDS)
def test_attributes_read_back_alone_and_nested(wanted, outer):
    packed = b"".join(attribute(kind, value) for kind, value in wanted.items())
    assert len(packed) % 4 == 0
    assert attributes(packed) == wanted
    assert attributes(b"head" + packed, 4) == wanted
    assert attributes(attributes(nest(outer, packed))[outer]) == wanted


@given(st.binary(max_size=60))
def test_broken_attributes_do_not_hang(body):
    assert len(attributes(body)) <= len(body) // 4


def test_a_dump_lists_the_loopback():
    with Netlink() as netlink:
        assert rtnl.links(netlink)["lo"][0] == socket.if_nametoindex("lo")


def test_a_refusal_names_the_message_and_the_reason():
    with Netlink() as netlink, pytest.raises(NetlinkError) as refusal:
        netlink.batch([rtnl.link_state(2**30, up=True)])  # a link that does not exist
    assert refusal.value.index == 0 and refusal.value.errno in (errno.EPERM, errno.ENODEV)
