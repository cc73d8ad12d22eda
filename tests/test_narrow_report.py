"""The report in a narrow terminal: figures whole, text folded, nothing cut."""
from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from emulator.report.fit import widths
from emulator.report.tables import table

NEEDS = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 60)).map(lambda pair: (pair[0], sum(pair))), min_size=1)


@given(NEEDS, st.integers(0, 200))
def test_columns_give_what_they_have(needs: list[tuple[int, int]], room: int) -> None:
    given_widths = widths(needs, room)
    assert all(least <= width <= most for (least, most), width in zip(needs, given_widths))
    least, most = (sum(each) for each in zip(*needs))
    assert sum(given_widths) == (most if most <= room else max(room, least))


def shown(columns: int) -> list[str]:
    made = table("Fullest queues", "port", "median depth", "p99 depth", "largest depth", "why")
    made.columns[-1].justify = "left"
    made.add_row("e3_0-eth4", "3.028 kB", "13.63 kB", "150.2 kB", "a sentence that says at some length what to do now")
    made.add_row("e0_0-eth1", "8.448 us", "0 B", "12.25 MB", "short")
    stream = io.StringIO()
    Console(file=stream, width=columns, highlight=False).print(made)
    return stream.getvalue().split("\n")


def test_figures_stay_with_their_units() -> None:
    for columns in (60, 66, 80, 120):
        lines = shown(columns)
        assert max(map(len, lines)) <= columns, columns
        for figure in ("3.028 kB", "13.63 kB", "150.2 kB", "8.448 us", "12.25 MB", "e3_0-eth4"):
            assert any(figure in line for line in lines), (columns, figure)
        words = " ".join(" ".join(lines).split())
        assert all(word in words for word in ("sentence", "length", "median", "largest")), columns


def test_a_table_that_is_too_wide_comes_in_parts() -> None:
    made = table("Classes", "class", *(f"column-{number}" for number in range(12)))
    made.add_row("best-effort", *(f"{number}.5 kB" for number in range(12)))
    stream = io.StringIO()
    Console(file=stream, width=80, highlight=False).print(made)
    text = stream.getvalue()
    assert max(map(len, text.split("\n"))) <= 80 and text.count("best-effort") == 2 and text.count("Classes") == 1
    assert all(f"column-{number}" in text and f"{number}.5 kB" in text for number in range(12))
