"""Schedules and fabrics as files of other simulators: htsim's .cm and .topo, GOAL. Pure but for __main__."""
