"""JSON-RPC over a Unix socket, as Open vSwitch speaks it to its database (RFC 7047) and to its daemons.

One connection serves any number of calls; a call is some 0.1 ms where a process of ovs-vsctl or
ovs-appctl is 10 ms.
"""
from __future__ import annotations

import json
import socket
import time

from emulator.errors import EmulatorError


class JsonRpc:
    """A client of the server that listens at `path`; use it in a `with` block or close it."""

    def __init__(self, path: str, timeout_s: float = 10.0) -> None:
        """Connect, waiting up to `timeout_s` for the socket to appear."""
        self._path, self._timeout_s = path, timeout_s
        self._next_id, self._text, self._decoder = 0, "", json.JSONDecoder()
        end_s = time.monotonic() + timeout_s
        while True:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                self._socket.connect(path)
                return
            except (FileNotFoundError, ConnectionRefusedError):
                self._socket.close()
                if time.monotonic() > end_s:
                    raise EmulatorError(f"Nobody answered at {path} within {timeout_s:g} s.") from None
                time.sleep(0.005)

    def __enter__(self) -> JsonRpc:
        return self

    def __exit__(self, *_exception) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def call(self, method: str, *params: object, timeout_s: float | None = None) -> object:
        """The result of `method`; raises EmulatorError with the server's own words when it fails."""
        self._next_id += 1
        self._send({"method": method, "params": list(params), "id": self._next_id})
        end_s = time.monotonic() + (timeout_s or self._timeout_s)
        while True:
            message = self._receive(end_s, method)
            if message.get("method") == "echo":  # the database asks whether we live
                self._send({"result": message["params"], "error": None, "id": message["id"]})
            elif message.get("id") == self._next_id and "method" not in message:
                if message.get("error") is not None:
                    raise EmulatorError(f"Open vSwitch refused {method}: {message['error']}")
                return message["result"]

    def _send(self, message: dict) -> None:
        self._socket.settimeout(self._timeout_s)
        try:
            self._socket.sendall(json.dumps(message).encode())
        except (BrokenPipeError, ConnectionResetError):
            raise EmulatorError(f"Open vSwitch has gone from {self._path}.") from None

    def _receive(self, end_s: float, method: str) -> dict:
        while True:
            self._text = self._text.lstrip()
            try:
                message, used = self._decoder.raw_decode(self._text)
            except json.JSONDecodeError:  # not all of it has come
                self._text += self._read(end_s, method)
                continue
            self._text = self._text[used:]
            return message

    def _read(self, end_s: float, method: str) -> str:
        self._socket.settimeout(max(0.001, end_s - time.monotonic()))
        try:
            data = self._socket.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        except TimeoutError:
            raise EmulatorError(f"Open vSwitch did not answer {method} at {self._path} in time.") from None
        if not data:
            raise EmulatorError(f"Open vSwitch closed {self._path} during {method}.")
        return data.decode()
