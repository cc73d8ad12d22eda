"""From what single sockets told to connections between ranks: who sent how much to whom, and when. Pure.

Both ends of a connection are sockets of our hosts, and each tells what it sent and what it received. Times
are those of the polls: a connection's begin and end are known to one poll.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from emulator.telemetry.tcp_sockets import LISTEN, SYN_SENT, TcpSocket
from traffic.records import Connection, ConnectionKey, Message

RTT_SAMPLE_S = 0.1
NEVER_RTT_S = 4000.0  # tcp_info's least round trip before there was one is 2^32 us
PHASE = "program"


@dataclass
class Account:
    """One socket over its life. first_s: when it was first seen; sent_s: when it was last seen to have sent
    more than before. forgot: it ended without telling its last counts."""

    host: str
    last: TcpSocket
    first_s: float
    sent_s: float
    ended: bool = False
    forgot: bool = False
    rtts_s: list[float] = field(default_factory=list)
    sampled_s: float = 0.0


class Ledger:
    """Every TCP socket between hosts that was ever seen. addresses: of the hosts, to their names.

    listening: host -> the addresses and ports at which something ever listened there. refused: host -> (its
    connections that were refused, resets that it sent), as its stack counted them: a socket that was refused
    forgets to whom it wanted (tcp_disconnect).
    """

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._host_at = addresses
        self.accounts: dict[int, Account] = {}
        self.listening: dict[str, dict[tuple[str, int], None]] = defaultdict(dict)
        self.refused: dict[str, tuple[int, int]] = {}

    def seen(self, host: str, sockets: Iterable[TcpSocket], now_s: float) -> None:
        """What a dump of `host` showed."""
        for one in sockets:
            if one.state == LISTEN:
                self.listening[host][one.local] = None
            elif one.remote[1]:
                self._update(host, one, now_s)

    def gone(self, host: str, one: TcpSocket, now_s: float) -> None:
        """A socket of `host` ended.

        One that was closed with SO_LINGER 0 has forgotten its counts, or even its peer (tcp_disconnect); what
        the last poll saw then stands.
        """
        before = self.accounts.get(one.cookie)
        if before and (not one.remote[1] or one.received_bytes < before.last.received_bytes
                       or one.sent_bytes < before.last.sent_bytes):
            before.ended = before.forgot = True
        elif one.remote[1]:
            self._update(host, one, now_s).ended = True

    def _update(self, host: str, one: TcpSocket, now_s: float) -> Account:
        account = self.accounts.get(one.cookie)
        if account is None:
            account = self.accounts[one.cookie] = Account(host, one, now_s, now_s)
        elif one.sent_bytes > account.last.sent_bytes:
            account.sent_s = now_s
        # the announcement of the end does not say the congestion control, and an orphan has no more addresses
        known = one.congestion_control or account.last.congestion_control
        account.last = replace(one, congestion_control=known)
        if one.unacked_bytes and one.info and now_s - account.sampled_s >= RTT_SAMPLE_S:
            account.sampled_s = now_s
            account.rtts_s.append(one.info.rtt_s)
        return account

    @property
    def open(self) -> list[Account]:
        """Sockets that have not ended, connections within a host included."""
        return [account for account in self.accounts.values() if not account.ended]

    @property
    def settled(self) -> bool:
        """Every socket has ended, and so did the other end of each connection: nothing more will be told."""
        ends = Counter((account.last.local, account.last.remote) for account in self.between_hosts)
        return not self.open and all(ends[remote, local] == count for (local, remote), count in ends.items())

    @property
    def between_hosts(self) -> list[Account]:
        """Sockets of connections that cross the fabric and were established."""
        return [account for account in self.accounts.values()
                if (peer := self._host_at.get(account.last.remote[0])) and peer != account.host
                and account.last.state != SYN_SENT and (account.last.sent_bytes or account.last.received_bytes
                                                        or account.last.acked_bytes or not account.ended)]

    @property
    def received_bytes(self) -> int:
        """Payload received over the fabric so far (and one for each FIN)."""
        return sum(account.last.received_bytes for account in self.between_hosts)

    def congestion_controls(self) -> dict[str, int]:
        """Sockets between hosts by the congestion control that they were seen to use ('' is not told)."""
        used = Counter(account.last.congestion_control for account in self.between_hosts)
        return dict(sorted((name, count) for name, count in used.items() if name))

    def local_connections(self) -> int:
        """Connections of a host with itself: they cross no link."""
        return sum(account.last.state != SYN_SENT and self._host_at.get(account.last.remote[0], account.host)
                   == account.host for account in self.accounts.values()) // 2


@dataclass(frozen=True)
class Direction:
    """What one end of a connection sent to the other. peer: the other end's account, where it was seen."""

    key: ConnectionKey
    account: Account
    peer: Account | None

    @property
    def expected_bytes(self) -> int:
        """Payload that the receiver's kernel must have: what was acknowledged."""
        last = self.account.last
        return last.sent_bytes if last.acked_bytes >= last.sent_bytes else max(0, last.acked_bytes - 1)

    @property
    def arrived_bytes(self) -> int:
        """Payload that the other end has received, by its own account, at most what is expected.

        Of an end that forgot its counts, or whose end was not announced and so was last read before it, the
        acknowledgements speak.
        """
        if self.peer and (self.peer.forgot or not self.peer.ended):
            return self.expected_bytes
        return min(self.peer.last.received_bytes if self.peer else 0, self.expected_bytes)


def directions(ledger: Ledger, rank_of: Mapping[str, int]) -> list[Direction]:
    """Each direction of each connection that carried payload, in order of first sight.

    Connections between the same two ranks are told apart by `channel`, from 0 in order of first sight.
    """
    ends = defaultdict(list)
    accounts = sorted(ledger.between_hosts, key=lambda account: (account.first_s, account.last.local))
    for account in accounts:
        ends[account.last.local, account.last.remote].append(account)
    channels: Counter[tuple[int, int]] = Counter()
    found = []
    for account in accounts:
        if not account.last.sent_bytes:
            continue
        local, remote = account.last.local, account.last.remote
        place = ends[local, remote].index(account)
        peers = ends[remote, local]
        a, b = rank_of[account.host], rank_of[ledger._host_at[remote[0]]]
        found.append(Direction(ConnectionKey(a, b, channels[a, b]), account,
                               peers[place] if place < len(peers) else None))
        channels[a, b] += 1
    return found


def connection(direction: Direction) -> Connection:
    """As the engine would tell of it."""
    last = direction.account.last
    info = last.info
    if info.min_rtt_s > NEVER_RTT_S:
        info = replace(info, min_rtt_s=0.0)
    return Connection(direction.key, last.local[1], last.remote[1], last.congestion_control, info,
                      tuple(direction.account.rtts_s))


def messages(listed: Sequence[Direction]) -> list[Message]:
    """One for each direction: what a program sends as a message, the kernel cannot know."""
    return [Message(0, d.key.src, d.key.dst, d.key.channel, 0, d.account.last.sent_bytes, d.account.first_s,
                    d.account.sent_s, d.account.sent_s, d.account.last.info.total_retrans, PHASE, 0)
            for d in listed]
