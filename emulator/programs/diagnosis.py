"""Why a program did not end well: sentences from how processes ended and how sockets stand. Pure."""
from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping, Sequence

from emulator.fabric.spec import HostSite
from emulator.programs.connections import Account, Ledger
from emulator.programs.records import RankEnd
from emulator.telemetry.tcp_sockets import ESTABLISHED, STATES, SYN_SENT

LOOPBACK = ("127.", "::1")


def signal_name(status: int) -> str:
    """'SIGSEGV' of -11, and of 139 as a shell says it; '' for an exit status."""
    number = -status if status < 0 else status - 128
    try:
        return signal.Signals(number).name if status < 0 or status > 128 else ""
    except ValueError:
        return f"signal {number}" if status < 0 else ""


def crashed(end: RankEnd) -> str:
    """The sentence about the first rank that failed."""
    how = f"was ended by {end.signal}" if end.signal else f"ended with exit status {end.exit_status}"
    said = f": {end.last_line}" if end.last_line else ", and its stderr is empty"
    return f"rank {end.rank} on {end.host} {how}{said}"


class Situation:
    """Who is where and how the sockets stand. sites[r] is the host of rank r."""

    def __init__(self, sites: Sequence[HostSite], ledger: Ledger) -> None:
        self.sites, self.ledger = sites, ledger
        self._rank_at: Mapping[str, int] = {site.ip: rank for rank, site in enumerate(sites)}

    def running(self, rank: int, elapsed_s: float) -> str:
        """A rank that still ran at the deadline, and what it waits for."""
        site = self.sites[rank]
        return f"rank {rank} on {site.name} still ran after {elapsed_s:.1f} s: {self._waits(site)}"

    def unreachable(self) -> list[str]:
        """A sentence for each rank, or address of no rank, that others asked for in vain."""
        asked: dict[tuple[str, int], list[str]] = {}
        for account in self.ledger.open:
            if account.last.state == SYN_SENT:
                asked.setdefault(account.last.remote, []).append(self._name(account.host))
        silent = [self._silent(ip, port, dict.fromkeys(names)) for (ip, port), names in asked.items()]
        return [*silent, *self._refusing()]

    def _silent(self, ip: str, port: int, names: Iterable[str]) -> str:
        who = ", ".join(names)
        if ip not in self._rank_at:
            return f"{who} asked for {ip}:{port}, which is no rank's address"
        rank = self._rank_at[ip]
        return (f"rank {rank} on {self.sites[rank].name} did not answer {who} at {ip}:{port}; "
                f"{self._listens(rank)}")

    def _refusing(self) -> Iterable[str]:
        """Ranks that refused connections and never had one, where others were refused and never had one."""
        connected = {account.host for account in self.ledger.between_hosts}
        in_vain = {host: self.ledger.refused.get(host, (0, 0)) for host in (site.name for site in self.sites)
                   if host not in connected}
        refused = [(self._name(host), count) for host, (count, _) in in_vain.items() if count]
        if not refused:
            return
        who = ", ".join(f"{count} connections of {name}" for name, count in refused)
        for rank, site in enumerate(self.sites):
            if in_vain.get(site.name, (0, 0))[1]:
                yield (f"rank {rank} on {site.name} could not be reached: it refused {who}; "
                       f"{self._listens(rank)}")

    def _listens(self, rank: int) -> str:
        listening = self.ledger.listening[self.sites[rank].name]
        at = ", ".join(f"{address or '*'}:{port}" for address, port in listening)
        if listening and all(address.startswith(LOOPBACK) for address, _ in listening):
            return f"it listened on {at} only, where no other host can reach it"
        return f"it listened on {at}" if listening else "it listened nowhere"

    def _name(self, host: str) -> str:
        return next((f"rank {rank}" for rank, site in enumerate(self.sites) if site.name == host), host)

    def _peer(self, account: Account) -> str:
        ip, port = account.last.remote
        rank = self._rank_at.get(ip)
        return f"rank {rank} ({ip}:{port})" if rank is not None else f"{ip}:{port}"

    def _waits(self, site: HostSite) -> str:
        mine = [account for account in self.ledger.open if account.host == site.name]
        across = [account for account in mine if account.last.remote[0] in self._rank_at
                  and account.last.remote[0] != site.ip]
        connecting = [account for account in mine if account.last.state == SYN_SENT]
        if connecting:
            return f"{self._peer(connecting[0])} does not answer its connection (SYN-SENT)"
        for account in across:
            if account.last.unread_bytes and account.last.state == ESTABLISHED:
                return f"it has not read {account.last.unread_bytes} bytes from {self._peer(account)}"
        for account in across:
            if account.last.unacked_bytes:
                return (f"{account.last.unacked_bytes} bytes are under way to {self._peer(account)} "
                        f"({STATES[account.last.state]})")
        if across:
            names = ", ".join(dict.fromkeys(self._peer(account).partition(" (")[0] for account in across))
            return f"nothing is under way on its connections with {names}; it waits or computes"
        listens = self._listens(self.sites.index(site)).removeprefix("it ")
        return f"it has no connection with another rank and {listens}"
