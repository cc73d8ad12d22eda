"""The command `classes` of the command line: what the classes of service are, and another weight for one."""
from __future__ import annotations

import re

from emulator.errors import BadInput
from emulator.fabric.switches import Switches
from emulator.units import show_size


def classes_command(switches: Switches | None, line: str) -> str:
    """Carry out 'classes LINE' and return what it says; BadInput for a line that is none.

    An empty line shows the table with what all switch ports together sent and dropped so far.
    """
    table = getattr(switches, "classes", None)
    if table is None:
        raise BadInput("This fabric has no classes of service; start it with --classes default.")
    words = line.split()
    if words:
        match = re.fullmatch(r"weight=([0-9]{1,6})", words[1]) if len(words) == 2 else None
        if match is None:
            raise BadInput(f'"classes {line}" is not of the form: classes NAME weight=N')
        switches.change_class(words[0], int(match[1]))
        table = switches.classes
    rows = [f"{'class':<14} {'DSCP':>4}  {'service':<10} {'of buffer':>9}  {'sent':>10}  {'drops':>6}"]
    for each, share, (sent_bytes, drops) in zip(table.classes, table.shares(), switches.class_counts()):
        rows.append(f"{each.name:<14} {each.dscp:>4}  {each.service:<10} {share:>9.1%}  "
                    f"{show_size(sent_bytes):>10}  {drops:>6}")
    return "\n".join(rows) + "\n"
