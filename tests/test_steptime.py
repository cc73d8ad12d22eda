from hypothesis import given, strategies as st

from emulator.steptime import exposed, iteration_times, length, union
from traffic.records import Iteration, Span

intervals = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted).map(tuple), max_size=12)


@given(intervals)
def test_union_is_disjoint_and_covers_the_same_points(listed):
    merged = union(listed)
    assert all(a[1] < b[0] for a, b in zip(merged, merged[1:]))
    covered = {p for start, end in listed for p in range(start, end)}
    assert length(merged) == len(covered)


@given(intervals, intervals)
def test_exposed_is_what_compute_does_not_hide(comm, compute):
    points = {p for s, e in comm for p in range(s, e)} - {p for s, e in compute for p in range(s, e)}
    assert exposed(comm, compute) == len(points)


def test_warm_up_is_left_out_and_ranks_are_averaged():
    spans = [Span(0, 0, "compute", "forward", 0, 0.0, 1.0), Span(1, 0, "compute", "forward", 0, 10.0, 12.0),
             Span(1, 0, "send", "forward", 0, 11.0, 14.0)]
    (only,) = iteration_times(spans, [Iteration(0, False, 0, 1), Iteration(1, True, 10, 15)], ranks=2)
    assert only.time_s == 5 and only.compute_s == 1 and only.exposed_comm_s == 1 and only.network_share == 0.2
