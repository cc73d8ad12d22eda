"""What os-ken swallows on native threads must come to light."""
from __future__ import annotations

import logging
import threading

import pytest
from os_ken.base.app_manager import OSKenApp
from os_ken.controller.event import EventBase
from os_ken.lib import hub

from controllers.app import ErrorsToLedger
from controllers.ledger import Ledger
from controllers.mending import mend_os_ken
from controllers.routing import plan_tables
from topologies.catalog import resolve_topology


@pytest.fixture
def ledger():
    """A ledger that hears the log, as in the controller process."""
    graph = resolve_topology("star:hosts=2")
    books = Ledger(graph, plan_tables(graph, "single", 1))
    handler = ErrorsToLedger(books)
    logging.getLogger().addHandler(handler)
    mend_os_ken()
    yield books
    logging.getLogger().removeHandler(handler)


def sentences(ledger: Ledger) -> list[str]:
    return [error["sentence"] for error in ledger.summary()["errors"]]


def test_an_exception_in_a_thread_reaches_the_books(ledger):
    def fail() -> None:
        raise OSError("Address already in use")

    hub.spawn(fail).join(timeout=5)
    assert len(sentences(ledger)) == 1 and "Address already in use" in sentences(ledger)[0]


def test_an_exception_in_a_handler_reaches_the_books_and_the_next_event_is_handled(ledger):
    class Event(EventBase):
        pass

    calls, second = [], threading.Event()

    def handler(event) -> None:
        calls.append(event)
        if len(calls) == 1:
            raise KeyError("no such switch")
        second.set()

    app = OSKenApp()
    app.register_handler(Event, handler)
    app.start()
    app._send_event(Event(), None)
    app._send_event(Event(), None)
    assert second.wait(timeout=5), "the thread that calls the handlers has ended"
    app.stop()
    assert len(sentences(ledger)) == 1 and "no such switch" in sentences(ledger)[0]
