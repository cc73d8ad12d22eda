"""All bridges and ports of a fabric as one transaction of Open vSwitch's database (RFC 7047).

The database is filled before ovs-vswitchd starts, so that the daemon configures itself once. Every port
has the QoS type linux-noop: without it ovs-vswitchd removes the port's HTB when the port is added.
Columns: ovs-vswitchd.conf.db(5).
"""
from __future__ import annotations

from collections.abc import Iterator

from emulator.errors import BadInput, EmulatorError
from emulator.fabric.build import Fabric
from emulator.fabric.jsonrpc import JsonRpc

DATABASE = "Open_vSwitch"
PROTOCOLS = ("OpenFlow13", "OpenFlow15")
_DAY_MS = 86_400_000
# The daemon shares its cores with the traffic: few threads, no periodic statistics, no flow that is
# forgotten while a rank computes (its next packet would be a miss).
DAEMON_SETTINGS = {"n-handler-threads": "1", "n-revalidator-threads": "1",
                   "stats-update-interval": str(_DAY_MS), "max-idle": str(_DAY_MS)}


def _set(items: list) -> list:
    return ["set", items]


def _map(items: dict[str, str]) -> list:
    return ["map", [list(item) for item in items.items()]]


def _named(kind: str, number: int) -> list[str]:
    return ["named-uuid", f"{kind}{number}"]


def operations(fabric: Fabric, controller: str) -> list[dict]:
    """The operations that make every bridge and port of `fabric`; `controller` is a target such as
    'tcp:127.0.0.1:6653'. Raises BadInput when two switches share a datapath id.
    """
    switches = fabric.spec.graph.switches
    seen: dict[int, str] = {}
    for switch in switches:
        if switch.dpid in seen:
            raise BadInput(f"Switches {seen[switch.dpid]} and {switch.name} have the same datapath id "
                           f"{switch.dpid:#x}; controllers could not tell them apart.")
        seen[switch.dpid] = switch.name
    rows, of_switch, serial = [], {switch.name: [] for switch in switches}, 0
    for port in fabric.switch_ports:
        serial += 1
        of_switch[port.node].append(_named("port", serial))
        rows.append(_insert("Interface", "interface", serial, name=port.name, ofport_request=port.number))
        rows.append(_insert("Port", "port", serial, name=port.name, interfaces=_named("interface", serial),
                            qos=_named("noop", 0)))
    for place, switch in enumerate(switches):
        # out of band and without probes: a controller that is slow under load is not a dead one
        rows.append(_insert("Controller", "controller", place, target=controller, max_backoff=1000,
                            inactivity_probe=0, connection_mode="out-of-band"))
        rows.append(_insert("Bridge", "bridge", place, name=switch.name, datapath_type=fabric.datapath,
                            fail_mode="secure", protocols=_set(list(PROTOCOLS)),
                            controller=_named("controller", place), ports=_set(of_switch[switch.name]),
                            other_config=_map({"datapath-id": f"{switch.dpid:016x}",
                                               "disable-in-band": "true"})))
    bridges = _set([_named("bridge", place) for place in range(len(switches))])
    return [_insert("QoS", "noop", 0, type="linux-noop"), *rows,
            _insert(DATABASE, "root", 0, bridges=bridges, next_cfg=1, other_config=_map(DAEMON_SETTINGS))]


def _insert(table: str, kind: str, number: int, **row: object) -> dict:
    return {"op": "insert", "table": table, "uuid-name": f"{kind}{number}", "row": row}


def transact(database: JsonRpc, wanted: list[dict]) -> list[dict]:
    """Run operations as one transaction; raises EmulatorError with the first operation that failed."""
    results = database.call("transact", DATABASE, *wanted)
    for operation, result in zip([*wanted, None], results):
        if result and "error" in result:
            raise EmulatorError(f"Open vSwitch's database refused {operation}: {result['error']}, "
                                f"{result.get('details', '')}")
    return results


def configured(database: JsonRpc) -> bool:
    """Has ovs-vswitchd put the transaction in force?"""
    rows = transact(database, [{"op": "select", "table": DATABASE, "where": [], "columns": ["cur_cfg"]}])
    return rows[0]["rows"][0]["cur_cfg"] >= 1


def port_faults(database: JsonRpc, fabric: Fabric) -> Iterator[str]:
    """A sentence for each bridge or port that is not as asked for."""
    interfaces, bridges = (result["rows"] for result in transact(database, [
        {"op": "select", "table": "Interface", "where": [], "columns": ["name", "ofport", "error"]},
        {"op": "select", "table": "Bridge", "where": [], "columns": ["name", "datapath_id"]}]))
    real = {row["name"]: row for row in interfaces}
    for port in fabric.switch_ports:
        row = real.get(port.name, {"ofport": None, "error": "it is not in the database"})
        if row["ofport"] != port.number:
            error = row["error"] if isinstance(row["error"], str) else "no error was given"
            yield f"Port {port.name} has OpenFlow number {row['ofport']} instead of {port.number}: {error}."
    ids = {row["name"]: row["datapath_id"] for row in bridges}
    for switch in fabric.spec.graph.switches:
        if ids.get(switch.name) != f"{switch.dpid:016x}":
            yield (f"Switch {switch.name} has datapath id {ids.get(switch.name)} instead of "
                   f"{switch.dpid:016x}.")
