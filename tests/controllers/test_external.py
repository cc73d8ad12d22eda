"""A controller of the user's own: relayed in, counted, or said to be missing."""
from __future__ import annotations

import socket
import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.external import external_address
from controllers.relay import PACKET_IN, Framer, Relay
from emulator.errors import BadInput
from tests.commands import CLONE, faults, finish, strict_json


@given(st.lists(st.tuples(st.integers(0, 35), st.integers(0, 60)), max_size=20), st.data())
def test_messages_are_counted_however_the_stream_is_cut(messages, data):
    stream = b"".join(struct.pack("!BBHI", 6, kind, 8 + size, 1) + bytes(size) for kind, size in messages)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    framer = Framer(PACKET_IN)
    for start, end in zip([0, *cuts], [*cuts, len(stream)]):
        framer.feed(stream[start:end])
    assert framer.count == sum(kind == PACKET_IN for kind, _ in messages)


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname(), 1)
        theirs, _ = server.accept()
    theirs.settimeout(1)
    return ours, theirs


@pytest.mark.parametrize("gone", ["controller", "switch", "both"])
def test_who_hangs_up_while_the_other_speaks_takes_only_that_connection_along(tmp_path, gone):
    """Both ends have news in one round, first of the one that hung up."""
    relay = Relay({"port": 0, "socket": str(tmp_path / "relay.sock")})
    inside, switch = tcp_pair()
    outside, controller = tcp_pair()
    relay.join(inside, outside)
    first, second = (switch, controller) if gone == "switch" else (controller, switch)
    first.close()
    if gone == "both":
        second.close()
    else:
        second.sendall(struct.pack("!BBHI", 6, PACKET_IN, 8, 1))
    relay.serve(1.0)
    assert inside.fileno() == outside.fileno() == -1
    next_inside, next_switch = tcp_pair()
    next_outside, next_controller = tcp_pair()
    relay.join(next_inside, next_outside)
    next_switch.sendall(struct.pack("!BBHI", 6, PACKET_IN, 8, 1))
    relay.serve(1.0)
    assert len(next_controller.recv(100)) == 8 and relay.packet_ins == 1


def test_how_it_is_written():
    assert external_address("external:10.0.0.1:6653") == ("10.0.0.1", 6653)
    assert external_address("external:[::1]:6653") == ("::1", 6653)
    assert external_address("ecmp") is None
    for text in ("external", "external:", "external:host", "external::1", "external:h:0", "external:h:x"):
        with pytest.raises(BadInput, match="external:HOST:PORT"):
            external_address(text)


@pytest.mark.root
def test_nobody_listens():
    status, _, said = finish("--routing", "external:127.0.0.1:1", "--workload", "pattern:stride=1",
                             "--topology", "leaf-spine:leaves=2,spines=2,hosts=1")
    assert status == 3 and said.count("\n") == 1 and "no controller listens on 127.0.0.1:1" in said


def scene(routing: str, out) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["unshare", "--net", "--fork", "--kill-child", sys.executable, "-m", "tests.controllers.external_scene",
         routing, str(out)], cwd=CLONE, capture_output=True, text=True, timeout=90)


@pytest.mark.root
def test_a_controller_outside_drives_the_switches(tmp_path):
    done = scene("ecmp", tmp_path)
    assert done.returncode in (0, 5), done.stderr
    assert "books: ['l1', 'l2', 's1', 's2'] 0" in done.stdout
    assert faults(strict_json(tmp_path / "summary.json")) == set()
