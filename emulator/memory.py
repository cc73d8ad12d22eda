"""What memory a run takes, read inside its sandbox, whose /proc shows its own processes and no others."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_KERNEL = ("SUnreclaim", "Percpu", "KernelStack", "PageTables")


@dataclass(frozen=True)
class Memory:
    """Bytes. processes: resident, of all processes of the run together (shared pages count for each).
    largest: resident at the most, of the largest of them. kernel: what the kernel holds for its objects
    (namespaces, links, queues, sockets), of the whole machine.
    """

    processes: int
    largest: int
    kernel: int


def read(proc: Path = Path("/proc")) -> Memory:
    """What is in use now."""
    resident, largest = 0, 0
    for process in proc.glob("[0-9]*"):
        try:
            fields = parse((process / "status").read_text())
        except OSError:  # it ended while we looked
            continue
        resident += fields.get("VmRSS", 0)
        largest = max(largest, fields.get("VmHWM", 0))
    return Memory(resident, largest, kernel(proc))


def kernel(proc: Path = Path("/proc")) -> int:
    """The kernel's own memory for its objects, of the whole machine."""
    fields = parse((proc / "meminfo").read_text())
    return sum(fields.get(name, 0) for name in _KERNEL)


def parse(text: str) -> dict[str, int]:
    """Name -> bytes, of the lines 'Name:  123 kB' of /proc/PID/status and /proc/meminfo."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB":
            found[name] = 1024 * int(words[0])
    return found
