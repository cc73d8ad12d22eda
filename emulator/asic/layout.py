"""The structs of the BPF programs (bpf/*.h) as numpy records, field by field.

`Map.array` and the batch calls compare these sizes with the kernel's, so a struct changed on one side
only is refused. Integers are little-endian but for what stands in packets (`>`).
"""
from __future__ import annotations

import numpy as np

MAX_CLASSES = 8
MAX_BUCKETS = 64
MAX_MASKS = 32
GROUP_SLOTS = 256
FLOWLET_SLOTS = 4096
SOJOURN_BINS = 416
GAP_BINS = 128
MAX_FRAME = 16384
NO_QUEUE = 0xFF
INGRESS_PORTS = 64
QUEUE_CHOSEN = 0x40000000
KICK_ETHERTYPE = 0x88B5

CAUSES = ("malformed", "no rule", "by rule", "no live bucket", "port down", "same port", "wire loss", "kick")
SET_ETH_DST, SET_ETH_SRC, TO_CONTROLLER = 1, 2, 4
(HASH, FLOWLET, SPRAY_ROUND_ROBIN, SPRAY_RANDOM, LEAST_QUEUE, LEAST_QUEUE_FLOWLET, FAILOVER) = range(7)

SETTINGS = np.dtype([("classes", "<u4"), ("telemetry", "<u4"), ("netns", "<u4"), ("ports", "<u4"),
                     ("samples", "<u4"), ("sample_gap_ns", "<u4"), ("rule_counts", "<u4"),
                     ("bucket_counts", "<u4"), ("crossings", "<u4")])
PORT = np.dtype([
    ("dev", "<u8"), ("leaf", "<u8", MAX_CLASSES), ("loss_in_q48", "<u8"), ("loss_out_q48", "<u8"),
    ("bytes_per_ns_q32", "<u8"), ("ns_per_byte_q16", "<u8"), ("avoided_ns", "<u8"),
    ("avoided_packets", "<u8"), ("number", "<u4"), ("in_use", "<u4"),
    ("switch_index", "<u4"), ("largest_frame", "<u4"), ("mark_bytes", "<u4", MAX_CLASSES),
    ("limit_bytes", "<u4", MAX_CLASSES), ("paused", "<u4"), ("pad", "<u4"), ("class_of_dscp", "u1", 64)])
DROPS = np.dtype([("packets", "<u8", len(CAUSES)), ("packet_ins_lost", "<u8")])
QUEUE = np.dtype([(name, "<u8") for name in (
    "depth_bytes", "depth_byte_ns", "changed_ns", "sampled_ns", "sampled_bytes", "arrived_packets",
    "arrived_bytes", "ect_packets", "sojourn_sum_ns", "sojourn_max_ns", "chained_events", "depth_max_bytes",
    "marked_packets", "lost_packets", "oversize_packets", "sent_packets", "sent_bytes", "dropped_packets",
    "held_packets", "held_bytes")] + [("sojourn", "<u4", SOJOURN_BINS)])
DEPARTURES = np.dtype([("last_ns", "<u8"), ("last_bytes", "<u4"), ("backlogged", "<u4"),
                       ("gap_deviation", "<u4", GAP_BINS)])
SAMPLE = np.dtype([("time_ns", "<u8"), ("queue", "<u4"), ("depth_bytes", "<u4")])

KEY = np.dtype([("ipv4_dst", ">u4"), ("ipv4_src", ">u4"), ("in_port", "<u4"), ("eth_type", ">u2"),
                ("l4_src", ">u2"), ("l4_dst", ">u2"), ("ip_proto", "u1"), ("dscp", "u1"),
                ("table", "<u2"), ("mask", "<u2")])
RULE = np.dtype([("priority", "<u4"), ("counter", "<u4"), ("output", "<u4"), ("group", "<u4"),
                 ("flags", "u1"), ("queue", "u1"), ("eth_dst", "u1", 6), ("eth_src", "u1", 6),
                 ("pad", "u1", 2)])
MASK = np.dtype([("key", KEY), ("priority", "<u4"), ("pad", "<u4")])
TABLE = np.dtype([("masks", "<u4"), ("pad", "<u4"), ("mask", MASK, MAX_MASKS)])
SWITCH = np.dtype([("generation", "<u4"), ("pad", "<u4"), ("table", TABLE, 2)])
BUCKET = np.dtype([("port", "<u4"), ("watch", "<u4"), ("weight", "<u4"), ("counter", "<u4"),
                   ("set_eth_dst", "u1"), ("queue", "u1"), ("eth_dst", "u1", 6), ("clear_ns", "<u8")])
GROUP = np.dtype([("seed", "<u8"), ("gap_ns", "<u8"), ("buckets", "<u4"), ("slots", "<u4"),
                  ("mode", "<u4"), ("pad", "<u4"), ("unit_ns_per_byte_q16", "<u8"),
                  ("bucket", BUCKET, MAX_BUCKETS),
                  ("slot", "u1", GROUP_SLOTS)])
COUNT = np.dtype([("packets", "<u8"), ("bytes", "<u8")])
REST = np.dtype([("bytes", "u1", MAX_FRAME)])
