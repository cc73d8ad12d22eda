"""What sockets and marks told, put together: bytes are kept, pairs are found, sentences name ranks."""
from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from emulator.fabric.spec import HostSite
from emulator.programs.connections import Ledger, directions, messages
from emulator.programs.diagnosis import Situation, crashed, signal_name
from emulator.programs.marks import boundaries, iterations, notes
from emulator.programs.records import RankEnd
from emulator.telemetry.tcp_sockets import CLOSE, ESTABLISHED, LISTEN, SYN_SENT, TcpSocket
from tests.outcomes import INFO

SITES = [HostSite(f"h{n}", f"h{n}", f"10.0.0.{n}", f"h{n}-eth0") for n in (1, 2, 3)]
ADDRESSES = {site.ip: site.name for site in SITES}
RANK_OF = {site.name: rank for rank, site in enumerate(SITES)}


def tcp(cookie: int, local: tuple[str, int], remote: tuple[str, int], state: int = ESTABLISHED, sent: int = 0,
        received: int = 0, **more: int) -> TcpSocket:
    plain = {"unread_bytes": 0, "unacked_bytes": 0, "acked_bytes": sent + 1, **more}
    return TcpSocket(cookie, state, local, remote, congestion_control="cubic", info=INFO, sent_bytes=sent,
                     received_bytes=received, **plain)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 10**9), st.integers(0, 10**9),
                          st.booleans()), max_size=12))
def test_every_byte_has_one_sender_and_one_receiver(connections: list[tuple[int, int, int, int, bool]]) -> None:
    ledger, expected = Ledger(ADDRESSES), 0
    for number, (a, b, forth, back, polled) in enumerate(connections):
        near, far = (f"10.0.0.{a}", 1000 + number), (f"10.0.0.{b}", 80)
        ends = [(f"h{a}", tcp(2 * number, near, far, sent=forth, received=back + 1)),
                (f"h{b}", tcp(2 * number + 1, far, near, sent=back, received=forth + 1))]
        for host, one in ends:
            if polled:
                ledger.seen(host, [one], float(number))
            ledger.gone(host, replace(one, state=CLOSE, congestion_control=""), number + 0.5)
        expected += (forth + back) * (a != b)
    listed = directions(ledger, RANK_OF)
    assert ledger.settled
    assert sum(one.expected_bytes for one in listed) == sum(one.arrived_bytes for one in listed) == expected
    assert len({one.key for one in listed}) == len(listed)
    assert sum(message.size_bytes for message in messages(listed)) == expected


def test_a_socket_that_forgot_its_counts_keeps_those_of_the_last_poll() -> None:
    ledger, near, far = Ledger(ADDRESSES), ("10.0.0.1", 80), ("10.0.0.2", 1000)
    ledger.seen("h1", [tcp(1, near, far, received=900)], 1.0)
    ledger.seen("h2", [tcp(2, far, near, sent=1000)], 1.0)
    ledger.gone("h1", tcp(1, ("", 0), ("", 0), CLOSE, acked_bytes=0), 2.0)
    ledger.gone("h2", tcp(2, far, near, CLOSE, sent=1000), 2.0)
    [sent] = directions(ledger, RANK_OF)
    assert ledger.settled and sent.arrived_bytes == sent.expected_bytes == 1000


def test_an_end_that_nobody_saw_is_missed() -> None:
    ledger = Ledger(ADDRESSES)
    ledger.gone("h2", tcp(2, ("10.0.0.2", 1000), ("10.0.0.1", 80), CLOSE, sent=1000), 2.0)
    [sent] = directions(ledger, RANK_OF)
    assert not ledger.settled and (sent.expected_bytes, sent.arrived_bytes) == (1000, 0)


def test_who_waits_for_whom() -> None:
    ledger = Ledger(ADDRESSES)
    ledger.seen("h1", [TcpSocket(9, LISTEN, ("127.0.0.1", 29500), ("", 0), 0, 0)], 1.0)
    ledger.seen("h2", [tcp(1, ("10.0.0.2", 1000), ("10.0.0.3", 80), unacked_bytes=77)], 1.0)
    ledger.seen("h3", [tcp(2, ("10.0.0.3", 80), ("10.0.0.2", 1000), unread_bytes=55),
                       tcp(3, ("10.0.0.3", 81), ("10.0.0.1", 9), SYN_SENT)], 1.0)
    seen = Situation(SITES, ledger)
    assert "127.0.0.1:29500 only, where no other host can reach it" in seen.running(0, 3.0)
    assert "77 bytes are under way to rank 2 (10.0.0.3:80)" in seen.running(1, 3.0)
    assert "rank 0 (10.0.0.1:9) does not answer" in seen.running(2, 3.0)
    assert seen.unreachable() == ["rank 0 on h1 did not answer rank 2 at 10.0.0.1:9; it listened on "
                                  "127.0.0.1:29500 only, where no other host can reach it"]


def test_a_rank_that_refuses_is_named_and_one_that_answered_later_is_not() -> None:
    ledger = Ledger(ADDRESSES)
    ledger.refused = {"h1": (0, 4), "h2": (4, 0), "h3": (0, 0)}
    assert Situation(SITES, ledger).unreachable() == [
        "rank 0 on h1 could not be reached: it refused 4 connections of rank 1; it listened nowhere"]
    ledger.seen("h1", [tcp(1, ("10.0.0.1", 80), ("10.0.0.2", 1000), sent=1)], 1.0)
    ledger.seen("h2", [tcp(2, ("10.0.0.2", 1000), ("10.0.0.1", 80), received=1)], 1.0)
    assert Situation(SITES, ledger).unreachable() == []


def test_how_a_rank_ended() -> None:
    assert [signal_name(status) for status in (0, 1, -11, 139, 128, 255)] == ["", "", "SIGSEGV", "SIGSEGV", "", ""]
    assert crashed(RankEnd(3, "h4", 1, last_line="boom")) == "rank 3 on h4 ended with exit status 1: boom"
    assert crashed(RankEnd(3, "h4", -9, "SIGKILL")) == "rank 3 on h4 was ended by SIGKILL, and its stderr is empty"


@given(st.dictionaries(st.integers(0, 3), st.lists(st.floats(0, 100), max_size=5).map(sorted), max_size=4))
def test_steps_follow_one_another_between_marks(times_s: dict[int, list[float]]) -> None:
    at, made = boundaries(times_s), iterations(times_s, 0.0, 200.0)
    assert at == sorted(set(at)) and all(one.end_s > one.start_s for one in made)
    assert len(made) == max(1, len(at) - 1)
    assert all(a.end_s == b.start_s for a, b in zip(made, made[1:]))
    assert made[0].start_s == (at[0] if at else 0.0)


def test_marks_that_come_together_are_no_steps() -> None:
    assert iterations({0: [3.0, 3.0]}, 1.0, 9.0) == iterations({}, 1.0, 9.0)
    assert [(one.start_s, one.end_s) for one in iterations({0: [3.0, 3.0, 5.0], 1: [2.0, 2.5, 4.0]}, 1.0, 9.0)
            ] == [(3.0, 5.0)]
    assert "2 of 2 marks came together" in notes({0: [3.0, 3.0]})[0]
    assert "all of the run is measured" in notes({0: [3.0, 3.0]})[0]
    assert "1 of 2 steps are timed" in notes({0: [3.0, 3.0, 5.0]})[0]
    assert notes({0: [3.0]}) == notes({}) == notes({0: [3.0, 5.0]}) == []
