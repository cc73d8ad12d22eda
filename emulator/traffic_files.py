"""Files of a bundle: who sent how much to whom, over which links; collectives; the background."""
from __future__ import annotations

from typing import Any

from emulator import bundle, report, results
from emulator.bundle import Bundle
from emulator.outcome import Outcome
from emulator.plan import Plan


def write_traffic(folder: Bundle, plan: Plan, outcome: Outcome, summary: dict[str, Any]) -> None:
    """Write them; collectives.txt and background.csv only where there are any."""
    seen = results.matrix(plan, outcome)
    folder.write("traffic_matrix.csv", bundle.csv_text(results.MATRIX_COLUMNS, seen.rows))
    folder.write("traffic_matrix.svg", report.heatmap(seen.measured, seen.labels,
                                                      f"Bytes received: {plan.workload.name}"))
    folder.write("link_bytes.csv", bundle.csv_text(
        results.LINK_BYTES_COLUMNS, [link.row() for link in results.link_bytes(plan, outcome)]))
    table = report.collectives(summary["jobs"], plan.experiment.dilation)
    if table:
        folder.write("collectives.txt", table)
    if plan.workload.background:
        folder.write("background.csv", bundle.csv_text(
            results.FLOW_COLUMNS, results.message_rows(results.background_flows(plan, outcome))))
