"""The report of one run, block by block; each works on the summary alone."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from emulator.report import setup, transport
from emulator.report.breakdown import breakdown
from emulator.report.classes import classes, pauses
from emulator.report.collectives import collectives
from emulator.report.events import events
from emulator.report.jobs import background, jobs_table
from emulator.report.program import program
from emulator.report.scheduling import scheduling
from emulator.report.tables import number, percent, seconds, table
from emulator.results import Flow
from emulator.units import show_rate, show_size, show_time

Summary = Mapping[str, Any]
MOST_FLOWS = 32


def headline(summary: Summary) -> str:
    """One line that says what ran."""
    e, s = summary["experiment"], summary["setup"]
    return (f"{e['topology']} · {s['hosts']} hosts, {s['switches']} switches, {s['links']} links · host "
            f"link {show_rate(e['rate_bps'])}{_link(e)} · MTU {e['mtu']} · buffer "
            f"{show_size(e['buffer_bytes'])} · {e['switch']} switch · {e['routing']} · {e['cc']} · "
            f"seed {e['seed']}")


def _link(experiment: Mapping[str, Any]) -> str:
    """Delay and bit errors of each link, where it has any."""
    delay, rate = experiment["delay_s"], experiment["bit_error_rate"]
    return (f", delay {show_time(delay)}" if delay else "") + (f", bit errors {rate:g}" if rate else "")


def _work(summary: Summary) -> Table:
    w, f = summary["workload"], summary["flows"]
    made = table(f"Workload: {w['name']}", "", "measured", "ideal", "of ideal")
    what = "completion of an iteration" if len(summary["jobs"]) < 2 else "until the last job ended"
    if summary["program"] and not summary["program"].get("marks"):
        what = "completion of the program"
    made.add_row(what, seconds(w["completion_s"]), seconds(w["ideal_s"]), percent(w["efficiency"]))
    if w["busbw_bps"] is not None:
        made.add_row("algorithm bandwidth", show_rate(w["algbw_bps"]), "", "")
        made.add_row("bus bandwidth", show_rate(w["busbw_bps"]), "", "")
    if w["goodput_bps"]:
        made.add_row("goodput of all hosts (ideal: their links)", show_rate(w["goodput_bps"]),
                     show_rate(w["host_links_bps"]), percent(w["host_links_share"]))
    if f["fct_p50_s"] is None:
        return made
    # of a real program a flow is all that a connection sent, with the pauses in between
    flow = "first to last byte of a connection" if summary["program"] else "flow completion"
    for what, key in ((f"{flow}, median of {f['count']}", "p50"), (f"{flow}, 99th percentile", "p99")):
        slowdown = f[f"slowdown_{key}"]
        made.add_row(what, show_time(f[f"fct_{key}_s"]), "",
                     "" if slowdown is None else f"slowdown {slowdown:.2f}")
    return made


def _iterations(summary: Summary) -> Table | None:
    iterations = summary["workload"]["iterations"]
    if not any(i["compute_s"] for i in iterations):
        return None
    made = table("Iterations (mean over ranks)", "iteration", "time", "compute", "exposed communication",
                 "network share")
    for place, i in enumerate(iterations):
        made.add_row(str(place + 1), show_time(i["time_s"]), show_time(i["compute_s"]),
                     show_time(i["exposed_comm_s"]), percent(i["network_share"]))
    return made


def _links(summary: Summary) -> Table:
    links = summary["links"]
    made = table("Links by tier (utilisation of the configured rate)", "tier", "links", "bytes sent",
                 "of expected", "mean up", "mean down", "peak")
    for name, tier in links["by_tier"].items():
        made.add_row(name, str(tier["links"]), show_size(tier["sent_bytes"]),
                     percent(tier["counted_over_expected"]), percent(tier["utilisation_up_mean"]),
                     percent(tier["utilisation_down_mean"]),
                     percent(tier["utilisation_peak"]))
    return made


def _spread(summary: Summary) -> str:
    """How evenly the uplinks and the highest switches were used."""
    links = summary["links"]
    if links["uplink_jain"] is None:
        return ""
    flows = " ".join(f"{name}:{count}" for name, count in links["connections_by_top_switch"].items())
    return (f"Uplinks: Jain index {links['uplink_jain']:.3f}, busiest {links['uplink_max_over_mean']:.2f} "
            f"times the mean. Connections over the top switches: {flows or 'each over many paths'}")


def _queues(summary: Summary, count: int = 6) -> Table:
    made = table("Fullest queues (time-weighted)", "port", "p50", "p95", "p99", "max", "of limit",
                 "delay p99", "drops")
    ports = sorted(summary["queues"]["by_port"], key=lambda q: (-q["max_bytes"], -q["p99_bytes"]))
    for q in ports[:count]:
        made.add_row(q["port"],
                     *(show_size(q[key]) for key in ("p50_bytes", "p95_bytes", "p99_bytes", "max_bytes")),
                     percent(q["max_bytes"] / q["limit_bytes"], 0),
                     show_time(q["delay_p99_s"]), str(q["dropped_packets"]))
    return made


def _loss(summary: Summary) -> str:
    loss = summary["loss"]
    hit = f"{loss['bit_error_packets']} lost to bit errors, " if loss["bit_error_rate"] else ""
    return (f"Loss: {loss['dropped_packets']} packets dropped ({percent(loss['loss_rate'], 3)}), {hit}"
            f"{loss['retransmitted_segments']} segments sent again, "
            f"{percent(loss['ecn_marked_fraction'])} of ECN-capable packets marked")


def _verdict(summary: Summary) -> Group:
    fidelity = summary["fidelity"]
    passed = fidelity["verdict"] == "pass"
    made = table("Can the emulation be trusted?", "check", "value", "limit", "", "why")
    made.columns[-1].justify = "left"
    for check in fidelity["checks"]:
        made.add_row(check["name"], number(check["value"]), number(check["limit"]),
                     Text("ok", "green") if check["ok"] else Text("FAIL", "bold red"), check["why"])
    line = Text("Verdict: ", "bold") + (
        Text("pass", "bold green") if passed else
        Text("FAIL. Do not quote these numbers; the failed checks say what to change.", "bold red"))
    return Group(made, line)


def _captures(summary: Summary) -> list[str]:
    """What each capture holds, and what it does not."""
    lines = []
    for c in summary["captures"]:
        lacks = [f"{c['dropped_packets']} more were not captured"] if c["dropped_packets"] else []
        lacks += ["it ends early, having reached its largest size"] if c["full"] else []
        lines.append("; ".join([f"Capture {c['file']}: {c['packets']} packets", *lacks]))
    return lines


def _flows(flows: Sequence[Flow]) -> Table | None:
    """Every message where they are few, as those of patterns and connection matrices are."""
    measured = [flow for flow in flows if flow.measured]
    if not 2 <= len(measured) <= MOST_FLOWS:
        return None
    made = table("Flows", "flow", "bytes", "start", "FCT", "ideal", "slowdown", "sent again", "path")
    made.columns[-1].justify = "left"
    for f in measured:
        made.add_row(f"{f.src} to {f.dst}", show_size(f.bytes), show_time(f.start_s), show_time(f.fct_s),
                     seconds(f.ideal_s), number(f.slowdown), str(f.retransmits), f.path)
    return made


def result(summary: Summary, flows: Sequence[Flow], out: str) -> Group:
    """The report of one run."""
    parts: list[Any] = [Text(headline(summary)), "", _work(summary)]
    if summary["program"]:
        parts += program(summary)
    iterations = _iterations(summary)
    if iterations:
        parts.append(iterations)
    parts += breakdown(summary)
    parts += [part for part in (jobs_table(summary), *background(summary)) if part is not None]
    table_of_collectives = collectives(summary["jobs"], summary["experiment"]["dilation"])
    if table_of_collectives:
        parts += [Text(table_of_collectives)]
    listed = _flows(flows)
    if listed:
        parts.append(listed)
    if summary["links"]:
        parts += [_links(summary), _spread(summary), _queues(summary), _loss(summary),
                  *transport.lines(summary), *scheduling(summary), ""]
    served = classes(summary)
    parts += [served, *pauses(summary)] if served else []
    happened = events(summary)
    parts += [happened] if happened else []
    parts += [Text(line) for line in _captures(summary)]
    parts += [Text(f"Stuck: {line}", "bold red") for line in summary["workload"]["stuck"]]
    parts += [f"Note: {note}" for note in summary.get("notes", ())]
    parts += [*setup.lines(summary), _verdict(summary), f"Result bundle: {out}"]
    return Group(*parts)
