"""Classes of service as a table: every form reads back as it was meant, every slip is one sentence."""
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.asic.layout import MAX_CLASSES
from emulator.asic.shaper import service
from emulator.class_specs import parse_classes
from emulator.classes import BEST_EFFORT, DEFAULT_TABLE, ServiceClass, checked
from emulator.errors import BadInput
from emulator.experiment import read_file
from emulator.matrix import expand

FRAME, BUFFER = 1514, 200 * 1514

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True).filter(lambda name: name != BEST_EFFORT)


@st.composite
def tables(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=7, unique=True))
    dscps = draw(st.lists(st.integers(0, 63), min_size=len(names), max_size=len(names), unique=True))
    shares = draw(st.lists(st.one_of(st.none(), st.sampled_from([0.05, 0.1])), min_size=len(names),
                           max_size=len(names)))
    return checked(tuple(
        ServiceClass(name, dscp, draw(st.one_of(st.none(), st.integers(1, 100))), share,
                     draw(st.one_of(st.none(), st.just(2 * FRAME))), draw(st.booleans()))
        for name, dscp, share in zip(names, dscps, shares)))


@given(tables())
def test_a_table_reads_back_as_it_is_written(table):
    assert parse_classes(table.as_mapping()) == table


@given(tables())
@settings(deadline=None)
def test_ports_queue_as_the_table_says(table):
    queueing = table.queueing(BUFFER, None, FRAME)
    assert len(queueing.classes) == MAX_CLASSES
    for number, each in enumerate(table.classes):
        assert queueing.class_of_dscp[each.dscp] == table.number(each.name) == number
        assert (queueing.classes[number].strict, queueing.classes[number].mark_bytes) == (each.strict, each.ecn_bytes)
    named = {each.dscp for each in table.classes}
    assert all(queueing.class_of_dscp[dscp] == table.rest for dscp in range(64) if dscp not in named)
    assert sum(each.limit_bytes for each in queueing.classes[:len(table.classes)]) <= BUFFER
    ranks = [prio for (_, prio), each in zip(service(queueing, FRAME), table.classes) if each.strict]
    assert ranks == sorted(ranks), "strict classes are served in the order of the table"
    assert table.classes[table.rest].dscp == 0
    assert table.dscp("what nobody named") == 0


def test_a_spec_a_mapping_and_a_file_say_the_same(tmp_path):
    file = tmp_path / "classes.yaml"
    file.write_text("classes:\n  gradients: {weight: 8, buffer: 25%}\n  tensor: {strict: true, dscp: 46}\n")
    of_file = parse_classes(str(file))
    assert of_file == parse_classes("gradients=weight:8+buffer:0.25,tensor=strict+dscp:46")
    assert [(each.name, each.dscp, each.weight, each.buffer_share) for each in of_file.classes] == [
        ("gradients", 10, 8, 0.25), ("tensor", 46, None, None), (BEST_EFFORT, 0, 1, None)]
    assert parse_classes("off") is None and parse_classes("default") == DEFAULT_TABLE
    assert parse_classes(DEFAULT_TABLE.as_mapping()) == DEFAULT_TABLE


def test_names_without_a_customary_dscp_get_class_selectors():
    table = parse_classes("apples=weight:2,pears=dscp:8+weight:3,plums=strict")
    assert [each.dscp for each in table.classes] == [16, 8, 24, 0]


@pytest.mark.parametrize("text, words", [
    ("a=weight:0,best-effort=weight:0", "sum to 0"), ("a=weight:0,b=weight:2", "outside 1 to 100"),
    ("a=weight:101", "outside 1 to 100"), ("a=weight:1.5", "not a whole number"),
    ("a=dscp:3,b=dscp:3", "both have DSCP 3"), ("a=dscp:64", "outside 0 to 63"),
    ("a=strict+weight:2", "both strict and"), ("a=wieght:2", 'did you mean "weight"'), ("a=weight:1,a=strict", "twice"),
    ("a=weight:1+weight:2", "twice"), ("a", "none of off, default"), ("A=weight:1", "no name of a class"),
    (",".join(f"c{n}=weight:1" for n in range(8)), "more than the 8"), ("a=", "not of the form"),
    (",".join(f"c{n}=weight:1" for n in range(12)), "more than the 8"), ("nowhere.yaml", "does not exist"),
    ("a=buffer:0.7,b=buffer:0.6", "sum to 1.3"), ("a=buffer:1", "leaves nothing"), ("a=buffer:x", "part of the port"),
    ("a=ecn:many", "is not a number"), ("a=lossless:maybe", "neither true nor false"),
    ("best-effort=dscp:9", "carries DSCP 0"), ("a=strict:no+weight:2,b=strict", None)])
def test_slips_are_one_sentence(text, words):
    if words is None:
        assert [each.strict for each in parse_classes(text).classes] == [False, True, False]
        return
    with pytest.raises(BadInput) as slip:
        parse_classes(text)
    assert words in str(slip.value) and "\n" not in str(slip.value)


@pytest.mark.parametrize("text, ecn, words", [
    ("a=buffer:0.001", None, "hold no frame"), ("a=ecn:1kB", None, "must lie between"),
    ("a=ecn:0", 30_000, "marks above 0 bytes"),
    ("a=weight:1", 290_000, "must lie between")])
def test_what_no_port_can_have_is_refused(text, ecn, words):
    with pytest.raises(BadInput, match=words):
        parse_classes(text).queueing(BUFFER, ecn, FRAME)


def test_a_weight_changes_only_where_there_is_one():
    table = DEFAULT_TABLE.with_weight("storage", 9)
    assert table.classes[table.number("storage")].weight == 9
    assert [a for a, b in zip(table.classes, DEFAULT_TABLE.classes) if a != b] == [table.classes[-1]]
    for name, weight in (("nobody", 1), ("management", 2), ("storage", 0)):
        with pytest.raises(BadInput):
            DEFAULT_TABLE.with_weight(name, weight)


def test_an_experiment_file_compares_tables(tmp_path):
    (tmp_path / "mine.yaml").write_text("gradients: {weight: 4}\n")
    file = tmp_path / "lab.yaml"
    file.write_text("workload: pattern:pair=0-1\nmatrix:\n  classes: [off, mine.yaml, {storage: {weight: 2}}]\n")
    runs = expand(read_file(str(file)), str(file))
    assert [run.experiment.classes for run in runs] == [
        "off", str(tmp_path / "mine.yaml"), {"storage": {"weight": 2}}]
    assert [run.label for run in runs][0::2] == ["classes=off", "classes=storage"]
