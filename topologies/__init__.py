"""Fabrics as Mininet `Topo` classes (one file each, bare) and, apart from them, their analysis.

`graph.py` turns any Topo into the plain Graph that all other packages read.
Nothing here touches the kernel.
"""
