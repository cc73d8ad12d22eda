"""The agent's event loop in this process, over Unix sockets: peers that are slow, rude or silent."""
from __future__ import annotations

import socket
import struct
from pathlib import Path

import pytest
from tests.agent.fake_datapath import FakeDatapath

from emulator.asic.agent import Agent
from emulator.asic.listening import listen_on
from emulator.errors import BadInput

HELLO = struct.pack("!BBHIHHI", 4, 0, 16, 1, 1, 8, 1 << 4)
ECHO = struct.pack("!BBHI", 4, 2, 8, 7)
PORT_STATS = struct.pack("!BBHIHH4xI4x", 4, 18, 24, 9, 4, 0, 0xFFFFFFFF)
TURNS = 400  # of the loop, at most, until something must have happened


class Clock:
    now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def agent(tmp_path: Path):
    made = Agent(FakeDatapath(dpids=(1, 2), ports=40), None,
                 {dpid: f"unix:{tmp_path}/{dpid}" for dpid in (1, 2)}, Clock())
    yield made
    made.close()
    assert list(tmp_path.iterdir()) == []


def client(tmp_path: Path, dpid: int = 1) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect(f"{tmp_path}/{dpid}")
    sock.setblocking(False)
    sock.sendall(HELLO)
    return sock


def turn_until(agent: Agent, sock: socket.socket, wanted: bytes) -> bytes:
    """Run the loop until `wanted` has come over `sock`."""
    data = b""
    for _ in range(TURNS):
        agent.step(0.001)
        try:
            data += sock.recv(1 << 20)
        except BlockingIOError:
            continue
        if wanted in data:
            return data
    raise AssertionError(f"{wanted!r} did not come, but {len(data)} other bytes")


def echo_reply(xid: int) -> bytes:
    return struct.pack("!BBHI", 4, 3, 8, xid)


def test_two_clients_of_two_switches(agent: Agent, tmp_path: Path) -> None:
    features = struct.pack("!BBHI", 4, 5, 8, 3)
    for dpid in (1, 2):
        with client(tmp_path, dpid) as sock:
            sock.sendall(features)
            turn_until(agent, sock, struct.pack("!BBHIQ", 4, 6, 32, 3, dpid))


def test_a_client_that_reads_nothing_is_not_read_from_either(agent: Agent, tmp_path: Path) -> None:
    with client(tmp_path) as greedy, client(tmp_path) as other:
        asked = 0
        for _ in range(TURNS):
            try:
                asked += greedy.send(PORT_STATS * 100)
            except BlockingIOError:
                pass
            agent.step(0)
        most = max(len(connection.session.out) for connection in agent.connections)
        assert asked > 0
        # Above 1 MB of answers it is not read from; one read more may have been under way (64 KB of
        # requests of 24 bytes, each answered by 4.5 KB).
        assert 1 << 20 < most < (1 << 20) + (1 << 16) // 24 * 4700
        other.sendall(ECHO)
        turn_until(agent, other, echo_reply(7))


def test_a_client_that_leaves_in_the_middle_of_a_message(agent: Agent, tmp_path: Path) -> None:
    with client(tmp_path) as rude:
        rude.sendall(ECHO[:5])
        for _ in range(5):
            agent.step(0)
        assert len(agent.connections) == 1
    with client(tmp_path) as polite:
        polite.sendall(ECHO)
        turn_until(agent, polite, echo_reply(7))
    for _ in range(5):
        agent.step(0)
    assert not agent.connections and not agent.switches[1].listeners


def test_noise_ends_the_connection_and_nothing_else(agent: Agent, tmp_path: Path) -> None:
    with client(tmp_path) as noisy:
        noisy.sendall(b"\x04\x02\x00\x02GET / HTTP/1.0\r\n\r\n")
        turn_until(agent, noisy, struct.pack("!HH", 1, 6))  # BAD_REQUEST, BAD_LEN
        for _ in range(3):
            agent.step(0)
        assert not agent.connections


def test_a_silent_peer_is_asked_and_then_given_up(agent: Agent, tmp_path: Path) -> None:
    with client(tmp_path) as sock:
        sock.sendall(ECHO)
        turn_until(agent, sock, echo_reply(7))
        agent.clock.now_s += 6
        turn_until(agent, sock, struct.pack("!BBH", 4, 2, 8))  # an echo request
        sock.sendall(echo_reply(1))
        for _ in range(3):
            agent.step(0)
        for more_s, left in ((6, 1), (8, 1), (2, 0)):
            agent.clock.now_s += more_s
            agent.step(0)
            assert len(agent.connections) == left


def test_packet_ins_reach_a_client_that_asked_for_them(agent: Agent, tmp_path: Path) -> None:
    flow = struct.pack("!BBHIQQBBHHHIIIH2xHH4xHH4xHHIH6x", 4, 14, 80, 5, 0, 0, 0, 0, 0, 0, 1, 0xFFFFFFFF,
                       0xFFFFFFFF, 0xFFFFFFFF, 0, 1, 4, 4, 24, 0, 16, 0xFFFFFFFD, 0xFFFF)
    with client(tmp_path) as sock:
        sock.sendall(struct.pack("!BBHIHH", 4, 9, 12, 4, 0, 128) + flow + ECHO)
        turn_until(agent, sock, echo_reply(7))
        agent.datapath.inject(1, 3, bytes(range(60)))
        turn_until(agent, sock, bytes(range(60)))


@pytest.mark.parametrize("address", [
    "tcp:0.0.0.0:6653", "tcp:127.0.0.1:0", "tcp:127.0.0.1:x", "ssl:127.0.0.1:1", "unix:", "6653",
    "unix:/nowhere/at/all", "unix:/" + "x" * 120])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(BadInput):
        listen_on(address, 1, (1,))


def test_a_switch_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="0000000000000009"):
        listen_on(f"unix:{tmp_path}/9", 9, (1,))


def test_a_socket_in_use_is_not_taken_over(agent: Agent, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="in use"):
        listen_on(f"unix:{tmp_path}/1", 1, (1,))
