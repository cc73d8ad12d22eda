"""From what a run brought back to what the bundle says. Pure; definitions in docs and each module."""
from emulator.results.class_rows import CLASS_COLUMNS as CLASS_COLUMNS
from emulator.results.class_rows import class_rows as class_rows
from emulator.results.events import followed as followed
from emulator.results.flows import FLOW_COLUMNS as FLOW_COLUMNS
from emulator.results.flows import Flow as Flow
from emulator.results.flows import background_flows as background_flows
from emulator.results.flows import flows as flows
from emulator.results.flows import message_rows as message_rows
from emulator.results.linkbytes import LINK_BYTES_COLUMNS as LINK_BYTES_COLUMNS
from emulator.results.linkbytes import link_bytes as link_bytes
from emulator.results.matrix import MATRIX_COLUMNS as MATRIX_COLUMNS
from emulator.results.matrix import matrix as matrix
from emulator.results.network import connections_by_top_switch as connections_by_top_switch
from emulator.results.summary import SCHEMA as SCHEMA
from emulator.results.summary import summarise as summarise
