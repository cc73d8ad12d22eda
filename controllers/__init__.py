"""Control plane: routing as pure functions from a Graph to tables, and the os-ken app that installs them.

ECMP is decided in `routing.py`; `app.py` only speaks OpenFlow.
"""
