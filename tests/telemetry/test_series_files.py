"""The series files hold what was sampled: bytes, drops and peaks, in a bounded number of rows."""
from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.fabric.spec import Port
from emulator.telemetry.series import QueueSeries
from emulator.telemetry.series_io import write_links, write_queues

START_S = 50.0


def _series(depth: np.ndarray, sent: np.ndarray, drops: np.ndarray) -> QueueSeries:
    count, ports = depth.shape
    named = tuple(Port(f"s1-eth{i}", "s1", i, i, None, 1e6, 60_000, i, "") for i in range(ports))
    time_s = START_S + np.arange(count) * 0.01
    return QueueSeries(named, 0.01, time_s, np.zeros(count), np.zeros(count), depth, depth // 1000, sent,
                       drops, np.full(ports, np.nan))


def _rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


tables = st.integers(1, 60).flatmap(lambda count: st.integers(1, 4).flatmap(
    lambda ports: st.lists(st.lists(st.integers(0, 3), min_size=ports, max_size=ports),
                           min_size=count, max_size=count)))


@given(tables, st.integers(4, 400))
def test_bytes_drops_and_peaks_survive(tmp_path_factory: pytest.TempPathFactory, table: list[list[int]],
                                        most_rows: int) -> None:
    depth = np.array(table) * 1000
    totals = np.cumsum(np.vstack([depth[:1] * 0, depth[:-1]]), axis=0)
    series = _series(depth, totals, totals // 1000)
    folder = tmp_path_factory.mktemp("series")
    write_queues(folder / "queues.csv", [series], START_S, most_rows)
    write_links(folder / "links.csv", [series], START_S, most_rows)
    queues, links = _rows(folder / "queues.csv"), _rows(folder / "links.csv")
    assert len(queues) <= most_rows
    assert len(links) <= most_rows + len(series.ports)
    for column, port in enumerate(series.ports):
        of_port = [row for row in queues if row["port"] == port.name]
        assert max((int(row["backlog_bytes"]) for row in of_port), default=0) == depth[:, column].max()
        assert int(of_port[-1]["dropped_packets"] if of_port else 0) == series.drops[-1, column]
        sent = sum(int(row["sent_bytes"]) for row in links if row["port"] == port.name)
        assert sent == series.sent_bytes[-1, column]


def test_a_series_that_fits_is_kept_change_by_change(tmp_path: Path) -> None:
    depth = np.array([[0], [1000], [1000], [3000], [0]])
    write_queues(tmp_path / "queues.csv", [_series(depth, depth * 0, depth * 0)], START_S)
    assert (tmp_path / "queues.csv").read_text() == (
        "time_s,port,backlog_bytes,dropped_packets\n"
        "0.010000,s1-eth0,1000,0\n0.030000,s1-eth0,3000,0\n0.040000,s1-eth0,0,0\n")


def test_utilisation_is_of_the_configured_rate(tmp_path: Path) -> None:
    sent = np.arange(11)[:, None] * 1250  # 10 ms at 1 Mb/s
    write_links(tmp_path / "links.csv", [_series(sent * 0, sent, sent * 0)], START_S)
    assert _rows(tmp_path / "links.csv") == [
        {"time_s": "0.000000", "port": "s1-eth0", "sent_bytes": "12500", "utilisation": "1.0000"}]


def test_no_samples_make_a_header_only(tmp_path: Path) -> None:
    empty = np.zeros((0, 1), int)
    write_queues(tmp_path / "queues.csv", [_series(empty, empty, empty)], START_S)
    write_links(tmp_path / "links.csv", [], START_S)
    assert _rows(tmp_path / "queues.csv") == _rows(tmp_path / "links.csv") == []
