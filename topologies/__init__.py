"""Fabrics as Mininet `Topo` classes (one file each, bare) and, apart from them, their analysis.

`catalog.py` turns a SPEC, and `from_mininet.py` any Topo, into the plain Graph (`graph.py`) that all
other packages read.
Nothing here touches the kernel.
"""
