"""OpenFlow 1.3 and 1.5 as a switch speaks them: bytes to plain data and back, and one connection's protocol.

No sockets and no datapath here; `agent.py` has the sockets, `switch.py` the tables.
"""
