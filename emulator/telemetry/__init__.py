"""What is measured and how: queues, links, sockets and cores, while traffic runs and before and after it.

The kernel is read in `netlink`, `qdisc`, `links`, `counters`, `cpu`; `sampler` starts the process
(`sample_loop`) whose arrays `series` holds. Pure arithmetic on them is in `statistics`, `shaping`,
`summary`; `series_io` writes them. The verdict is not here (see `emulator.fidelity`).
"""
