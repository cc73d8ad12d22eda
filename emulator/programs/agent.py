"""What mpirun calls in place of ssh: `agent HOST COMMAND…` has the run start COMMAND on HOST, and waits.

A script that stands alone: it runs as the user, who may not enter a host's namespace, so it hands its
standard files to the run over a UNIX socket and takes the exit status back. Its first argument, before
those of mpirun, is the socket.
"""
from __future__ import annotations

import json
import socket
import sys


def main() -> int:
    where, host, command = sys.argv[1], sys.argv[2], " ".join(sys.argv[3:])  # as ssh joins them for a shell
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.connect(where)
        socket.send_fds(line, [json.dumps([host, command]).encode()], [0, 1, 2])
        answer = line.recv(64)
    return int(answer) if answer else 255


if __name__ == "__main__":
    sys.exit(main())
