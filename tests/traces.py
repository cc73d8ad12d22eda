"""What a run may have left on the machine, found by a token that its processes and names carry."""
from __future__ import annotations

import os
import time
from pathlib import Path


def traces(token: str) -> list[str]:
    """Every process, mount, link, namespace and file in sight that carries `token`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (process / "environ").read_bytes() and process.name != str(os.getpid()):
                found.append((process / "cmdline").read_text())
        except OSError:  # it ended while we looked
            continue
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if token in line]
    for directory in ("/sys/class/net", "/run/netns", "/run", "/tmp", "/dev/shm", "/var/run", "/etc"):
        if os.path.isdir(directory):
            found += [f"{directory}/{name}" for name in os.listdir(directory) if token in name]
    return found


def gone(token: str, within_s: float = 10.0) -> list[str]:
    """What is still there of `token` once it had time to go."""
    end = time.monotonic() + within_s
    while (left := traces(token)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def state() -> dict[str, str]:
    """The machine's links, mounts and named namespaces, as text to be compared."""
    links = {path.name: (path / "ifindex").read_text() for path in Path("/sys/class/net").iterdir()}
    netns = sorted(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else []
    return {"links": str(sorted(links.items())), "mounts": Path("/proc/self/mountinfo").read_text(),
            "namespaces": str(netns), "run": str(sorted(os.listdir("/run")))}
