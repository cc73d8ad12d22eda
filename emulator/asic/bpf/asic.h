/* What the three objects of the bpf switch share. emulator/asic/layout.py mirrors every struct here.
 *
 * All switch ports of a fabric are in one network namespace; a port's index everywhere is its ifindex.
 * 6.1's verifier loses the bound of a compared index, hence the explicit masks.
 */
#ifndef ASIC_H
#define ASIC_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>
#include "histogram.h"

#define TC_ACT_OK 0
#define TC_ACT_SHOT 2
#define TC_ACT_STOLEN 4
#define ETH_HLEN 14
#define ETH_P_IP 0x0800
#define ETH_P_KICK 0x88b5         /* IEEE 802 local experimental: a frame that only wakes a qdisc */

#define MAX_CLASSES 8
#define MAX_BUCKETS 64
#define MAX_MASKS 32
#define GROUP_SLOTS 256
#define FLOWLET_SLOTS 4096        /* per switch, as the tables of a chip */
#define GAP_BINS 128
#define MAX_FRAME 16384

#define HTB_MAJOR 1               /* class i of a port is 1:(i+1), its leaf qdisc (0x10+i):0 */
#define LEAF_MAJOR 0x10
#define QUEUE_CHOSEN 0x40000000   /* in skb->priority, from forward to queue: low bits are the class */
#define NO_QUEUE 0xff
#define CAME_BY_SHIFT 8           /* in skb->priority, from forward to queue: the number of the port it came by */
#define INGRESS_PORTS 64

enum asic_cause {                      /* why a packet was dropped before it reached an egress queue */
	DROP_MALFORMED, DROP_NO_RULE, DROP_BY_RULE, DROP_NO_LIVE_BUCKET, DROP_PORT_DOWN, DROP_SAME_PORT,
	DROP_WIRE_LOSS, DROP_KICK, DROP_CAUSES,
};

struct asic_settings {                 /* constant for the verifier: dead branches cost nothing */
	__u32 classes;            /* 1 or MAX_CLASSES */
	__u32 telemetry;          /* 0 or 1 */
	__u32 netns;              /* inode of the namespace of the ports */
	__u32 ports;              /* one more than the largest ifindex */
	__u32 samples;            /* a power of two */
	__u32 sample_gap_ns;
	__u32 rule_counts;        /* of one CPU */
	__u32 bucket_counts;
	__u32 crossings;          /* 0 or 1: count what crosses a switch from which port to which queue */
};

struct asic_port {
	__u64 dev;                /* struct net_device *, found by observe() */
	__u64 leaf[MAX_CLASSES];  /* struct Qdisc * of each class */
	__u64 loss_in_q48;        /* chance of loss a byte, received from and sent to the wire */
	__u64 loss_out_q48;
	__u64 bytes_per_ns_q32;
	__u64 ns_per_byte_q16;
	__u64 avoided_ns;         /* when the first packet meant for the dead port took another, 0: none yet */
	__u64 avoided_packets;
	__u32 number;             /* the OpenFlow port number */
	__u32 in_use;
	__u32 switch_index;
	__u32 largest_frame;      /* bytes, with the Ethernet header */
	__u32 mark_bytes[MAX_CLASSES];  /* set CE when the queue is longer; 0: never */
	__u32 limit_bytes[MAX_CLASSES]; /* of the leaf; for those who read this map */
	__u32 paused;             /* bit per class */
	__u32 pad;
	__u8 class_of_dscp[64];
};

struct asic_drops {
	__u64 packets[DROP_CAUSES];
	__u64 packet_ins_lost;
};

struct asic_queue {               /* index: ifindex * classes + class */
	/* one cache line that both ends of the queue write: depth as it changes, and what came in */
	__u64 depth_bytes;
	__u64 depth_byte_ns;      /* integral of depth over time */
	__u64 changed_ns;
	__u64 sampled_ns;
	__u64 sampled_bytes;
	__u64 arrived_packets;
	__u64 arrived_bytes;
	__u64 ect_packets;
	/* by the CPU that holds the root qdisc's lock */
	__u64 sojourn_sum_ns;
	__u64 sojourn_max_ns;
	__u64 chained_events;
	/* seldom written */
	__u64 depth_max_bytes;
	__u64 marked_packets;
	__u64 lost_packets;       /* bit errors on the way out */
	__u64 oversize_packets;
	/* the kernel's own numbers as observe() last read them */
	__u64 sent_packets;
	__u64 sent_bytes;
	__u64 dropped_packets;
	__u64 held_packets;
	__u64 held_bytes;
	__u32 sojourn[SOJOURN_BINS];
};

struct asic_departures {               /* of a port: are its packets spaced as its rate says? */
	__u64 last_ns;
	__u32 last_bytes;
	__u32 backlogged;
	__u32 gap_deviation[GAP_BINS];  /* by |gap / ideal - 1| in percent; the last bin holds the rest */
};

struct asic_sample {
	__u64 time_ns;            /* CLOCK_MONOTONIC */
	__u32 queue;
	__u32 depth_bytes;
};

const volatile struct asic_settings settings;

/* The loader sets the sizes. The mapped ones are read and written in its own memory. */
#define ARRAY(name, value_type, flags) \
	struct { \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(map_flags, flags); \
		__uint(max_entries, 1); \
		__type(key, __u32); \
		__type(value, value_type); \
	} name SEC(".maps")
#define MAPPED_ARRAY(name, value_type) ARRAY(name, value_type, BPF_F_MMAPABLE)

MAPPED_ARRAY(ports, struct asic_port);

/* A field of a kernel object whose address is only a number here; a stale address cannot fault. */
#define READ_FIELD(to, address, type, field) \
	bpf_probe_read_kernel(&(to), sizeof(to), &((type *)(address))->field)

static __always_inline __u32 depth_of(const struct asic_port *port, __u32 class)
{
	__u32 depth = 0;
	__u64 leaf = port->leaf[class & (MAX_CLASSES - 1)];

	if (leaf)
		READ_FIELD(depth, leaf, struct Qdisc, qstats.backlog);
	return depth;
}

static __always_inline __u32 class_of(const struct asic_port *port, __u32 dscp)
{
	if (settings.classes == 1)
		return 0;
	return port->class_of_dscp[dscp & 63] & (MAX_CLASSES - 1);
}

/* Was a packet of `bytes` hit by a bit error? 1-(1-p)^n to second order, exact to 1 % below a loss of .2 */
static __always_inline bool hit_by_error(__u64 loss_per_byte_q48, __u32 bytes)
{
	__u64 x = (loss_per_byte_q48 * bytes) >> 16;  /* Q32 */

	return bpf_get_prandom_u32() < x - ((x * x) >> 33);
}

#endif
