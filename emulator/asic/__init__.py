"""The `bpf` switch, the fabric's ASIC: BPF programs on the ports, and the agent that speaks OpenFlow.

`pipeline.py` is the line between the two: the agent hands over PipelineTables, a Datapath carries them out.
"""
