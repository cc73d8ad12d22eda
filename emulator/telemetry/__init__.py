"""What is measured and how: queues, links, sockets and cores, sampled while traffic runs.

Reading the kernel lives in `netlink`, `qdisc`, `links`, `counters`, `cpu`; the sampling process in
`sampler` and `sample_loop`; arithmetic on what was seen in `statistics` and `summary`.
The verdict on it is not here (see `emulator.fidelity`).
"""
