"""Asking a controller that ends before it has answered: a sentence, and never a drain that counts as done."""
from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from controllers import status
from controllers.process import ControllerProcess, ask
from controllers.status import Running
from emulator.errors import EmulatorError
from emulator.events import parse_events
from emulator.events.conductor import Conductor
from emulator.events.record import Happening, Tally

ANSWERS = [b"", b'{"ready": tr', b"\xff"]


@pytest.fixture(params=ANSWERS, ids=["nothing", "half an answer", "no text"])
def breaks_off(request, tmp_path: Path) -> Path:
    """The socket of a controller that is killed while it answers."""
    path = tmp_path / "c.sock"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(1)

    def serve() -> None:
        connection, _ = server.accept()
        with connection, server:
            connection.recv(4096)
            connection.sendall(request.param)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield path
    thread.join(5)


def test_it_is_a_broken_connection(breaks_off: Path) -> None:
    with pytest.raises(ConnectionError, match="hung up before it had answered"):
        ask(breaks_off, {}, 5.0)


def test_the_status_says_it_in_a_sentence(breaks_off: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(Running, "socket", property(lambda run: breaks_off))
    monkeypatch.setattr(status, "running", lambda: [Running(11, "/tmp/a")])
    monkeypatch.setattr(status.os, "geteuid", lambda: 0)
    assert status.main(["--watch"]) == EmulatorError.exit_status
    said = capsys.readouterr().err
    assert said == "status: the controller of run 11 does not answer: it hung up before it had answered.\n"


def test_a_drain_that_it_does_not_live_to_confirm_is_refused(breaks_off: Path, tmp_path: Path) -> None:
    event, = parse_events(["1s drain l1-s1"])
    conductor = Conductor.__new__(Conductor)
    conductor._controller = ControllerProcess(SimpleNamespace(), breaks_off, tmp_path / "controller.log")
    conductor._change, conductor._drains = threading.Condition(), []
    conductor._happenings = [Happening(event.text, event.kind, event.target, False, 0.0, 0.0, 0.0, Tally())]
    conductor._drain(event, 0)
    conductor._drains[0].join(5)
    assert conductor._happenings[0].refused == ("the controller did not say that it is done: it hung up before "
                                                "it had answered.")
    conductor._drain(event, 0)  # by now nobody listens
    conductor._drains[1].join(5)
    assert conductor._happenings[0].refused == "the controller is down, or has not started yet."


def test_a_whole_answer_is_read(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "c.sock"))
        server.listen(1)

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                asked = json.loads(connection.makefile("rb").readline())
                connection.sendall(json.dumps({"to": asked}).encode())

        threading.Thread(target=serve, daemon=True).start()
        assert ask(tmp_path / "c.sock", {"ask": "books"}, 5.0) == {"to": {"ask": "books"}}
