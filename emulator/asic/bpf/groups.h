/* From a group to the member that a packet takes. emulator/asic/grouprecord.py writes the groups. */
#ifndef GROUPS_H
#define GROUPS_H

#include "lookup.h"

struct asic_bucket {
	__u32 port, watch;        /* ifindexes */
	__u32 weight;
	__u32 counter;
	__u8 set_eth_dst, queue;
	__u8 eth_dst[6];
	__u64 clear_ns;           /* least queue: when the path will have passed on all that it was given */
};

enum asic_mode {
	MODE_HASH, MODE_FLOWLET, MODE_SPRAY_ROUND_ROBIN, MODE_SPRAY_RANDOM, MODE_LEAST_QUEUE,
	MODE_LEAST_QUEUE_FLOWLET, MODE_FAILOVER,
};

struct asic_group {
	__u64 seed;
	__u64 gap_ns;
	__u32 buckets;
	__u32 slots;              /* used entries of slot[]; each names a bucket, by weight */
	__u32 mode;
	__u32 pad;
	__u64 unit_ns_per_byte_q16;  /* least queue: of a path with weight 1 */
	struct asic_bucket bucket[MAX_BUCKETS];
	__u8 slot[GROUP_SLOTS];
};

struct asic_flowlet {
	__u64 seen_ns;
	__u32 group;              /* where a flow takes turns: which flow it is */
	__u32 bucket;             /* where a flow takes turns: whose turn it is */
};

MAPPED_ARRAY(groups, struct asic_group);
ARRAY(flowlets, struct asic_flowlet, 0);

/* murmur3's finaliser; a seed mixed in before each word makes switches independent of each other.
 * emulator/asic/hashing.py is the same function. */
static __always_inline __u64 mix(__u64 x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

static __always_inline __u64 flow_hash(const struct asic_key *key, __u64 seed)
{
	__u64 hash = mix(seed ^ ((__u64)bpf_ntohl(key->ipv4_src) << 32 | bpf_ntohl(key->ipv4_dst)));

	return mix(hash + seed ^ ((__u64)key->ip_proto << 32 | (__u32)bpf_ntohs(key->l4_src) << 16 |
				  bpf_ntohs(key->l4_dst)));
}

/* The link state of a port as the kernel holds it at this moment: up, and with a carrier. */
static __always_inline bool alive(const struct asic_port *port)
{
	__u64 state = 0;

	READ_FIELD(state, port->dev, struct net_device, state);
	return (state & (1 << __LINK_STATE_START)) && !(state & (1 << __LINK_STATE_NOCARRIER));
}

/* A key must be on the stack: 6.1 takes none from memory that a function was handed. */
static __always_inline struct asic_port *port_at(__u32 ifindex)
{
	return bpf_map_lookup_elem(&ports, &ifindex);
}

static __always_inline bool bucket_alive(const struct asic_bucket *bucket)
{
	struct asic_port *watched = port_at(bucket->watch);

	return watched && watched->in_use && alive(watched);
}

/* A packet that was meant for this bucket takes another: local repair, as it happens. */
static __always_inline void note_avoided(const struct asic_bucket *bucket)
{
	struct asic_port *watched = port_at(bucket->watch);

	if (!watched)
		return;
	if (!watched->avoided_ns)
		watched->avoided_ns = bpf_ktime_get_ns();
	__sync_fetch_and_add(&watched->avoided_packets, 1);
}

static __always_inline struct asic_bucket *bucket_at(struct asic_group *group, __u32 index)
{
	index &= MAX_BUCKETS - 1;
	asm volatile("" : "+r"(index));
	return &group->bucket[index & (MAX_BUCKETS - 1)];
}

/* The functions below that are not static are verified on their own; inlined, their loops multiply. */

/* One of the live members by weight, always the same for a number (reservoir sampling), or -1. */
__noinline int any_alive(struct asic_group *group, __u32 number)
{
	__u64 total = 0;
	int chosen = -1;

	if (!group)
		return -1;
	for (__u32 i = 0; i < MAX_BUCKETS && i < group->buckets; i++) {
		struct asic_bucket *bucket = bucket_at(group, i);

		if (!bucket_alive(bucket))
			continue;
		total += bucket->weight;
		if ((mix((__u64)i << 32 | number) >> 32) * total >> 32 < bucket->weight)
			chosen = i;
	}
	return chosen;
}

/* The member that `slot` names. If it is dead the live ones share its packets by weight, `number`
 * deciding; flows of live members stay where they are. */
static __always_inline int by_slot(struct asic_group *group, __u32 number, __u32 slot)
{
	__u32 chosen = group->slot[slot & (GROUP_SLOTS - 1)] & (MAX_BUCKETS - 1);
	int other;

	if (bucket_alive(bucket_at(group, chosen)))
		return chosen;
	other = any_alive(group, number);
	if (other >= 0)
		note_avoided(bucket_at(group, chosen));
	return other;
}

/* Uniform numbers give each member its share by weight. */
static __always_inline int by_number(struct asic_group *group, __u32 number)
{
	return by_slot(group, number, (__u64)number * group->slots >> 32);
}

/* The live member by which a packet will be through soonest: after what waits in this switch's queue, at
 * the port's rate, or after what this group gave the path before, at the rate that the path can pass on
 * further away (its weight), whichever is later. The second is a virtual queue: it stands for the one that
 * cannot be seen from here. Where the path is as fast as its port it runs along with the first. Members are
 * visited from number `turn` on, so it breaks ties. Two CPUs may overwrite each other's clear_ns: a packet's
 * worth of error. */
__noinline int least_queue(struct asic_group *group, __u32 turn, __u32 dscp, __u32 bytes)
{
	__u64 now = bpf_ktime_get_ns(), earliest = ~0ULL, clear = 0;
	int chosen = -1;

	if (!group)
		return -1;
	__u32 n = group->buckets, first = n ? turn % n : 0;

	for (__u32 i = 0; i < MAX_BUCKETS && i < n; i++) {
		__u32 index = first + i < n ? first + i : first + i - n;
		struct asic_bucket *bucket = bucket_at(group, index);
		struct asic_port *port = port_at(bucket->port);

		if (!port || !bucket->weight)
			continue;
		if (!bucket_alive(bucket)) {
			note_avoided(bucket);
			continue;
		}
		__u32 class = bucket->queue == NO_QUEUE ? class_of(port, dscp) : bucket->queue;
		__u32 depth = depth_of(port, class) + bytes;
		__u64 through = (depth * port->ns_per_byte_q16 >> 16) + now;
		__u64 passed_on = bucket->clear_ns > now ? bucket->clear_ns : now;

		passed_on += group->unit_ns_per_byte_q16 / bucket->weight * bytes >> 16;
		if (passed_on > through)
			through = passed_on;
		if (through < earliest) {
			earliest = through;
			/* what the full queue of the port will drop burdens no path */
			clear = depth > port->limit_bytes[class & (MAX_CLASSES - 1)] ? 0 : passed_on;
			chosen = index;
		}
	}
	if (chosen >= 0 && clear)
		bucket_at(group, chosen)->clear_ns = clear;
	return chosen;
}

__noinline int first_alive(struct asic_group *group)
{
	if (!group)
		return -1;
	for (__u32 i = 0; i < MAX_BUCKETS && i < group->buckets; i++)
		if (bucket_alive(bucket_at(group, i)))
			return i;
	return -1;
}

/* A flowlet keeps its member while its packets follow within the gap and the member lives
 * (Kandula, CCR'07; LetFlow, NSDI'17: a new one goes to a random member). Colliding flows share one. */
static __always_inline int by_flowlet(struct asic_group *group, __u32 number, __u32 switch_index,
				      __u64 hash, __u32 dscp, __u32 bytes)
{
	__u32 place = switch_index * FLOWLET_SLOTS + (hash & (FLOWLET_SLOTS - 1));
	struct asic_flowlet *flowlet = bpf_map_lookup_elem(&flowlets, &place);
	__u64 now = bpf_ktime_get_ns();
	int chosen;

	if (!flowlet)
		return -1;
	if (flowlet->group == number && now - flowlet->seen_ns < group->gap_ns &&
	    bucket_alive(bucket_at(group, flowlet->bucket))) {
		flowlet->seen_ns = now;
		return flowlet->bucket;
	}
	chosen = group->mode == MODE_FLOWLET ? by_number(group, bpf_get_prandom_u32()) :
					       least_queue(group, bpf_get_prandom_u32(), dscp, bytes);
	flowlet->group = number;
	flowlet->bucket = chosen;
	flowlet->seen_ns = now;
	return chosen;
}

/* Each flow takes the members in turn by itself (Dixit et al., INFOCOM'13). One turn for all flows would
 * keep step with them: of two hosts that send alike each would have an uplink to itself, and data and
 * acknowledgements that alternate would part; then what comes together further on collides as under ECMP.
 * So two flows must not share an entry either: there are two for each, and a third flow takes the one that
 * was used longer ago, from a random member on. */
static __always_inline __u32 turn_of(__u32 switch_index, __u64 hash)
{
	__u32 tag = hash >> 32, place = switch_index * FLOWLET_SLOTS + (hash & (FLOWLET_SLOTS - 1));
	__u32 beside = place ^ 1;
	struct asic_flowlet *flow = bpf_map_lookup_elem(&flowlets, &place);
	struct asic_flowlet *other = bpf_map_lookup_elem(&flowlets, &beside);

	if (!flow || !other)
		return tag;
	if (flow->group != tag && (other->group == tag || other->seen_ns < flow->seen_ns))
		flow = other;
	if (flow->group != tag) {
		flow->group = tag;
		flow->bucket = bpf_get_prandom_u32();
	}
	flow->seen_ns = bpf_ktime_get_ns();
	return __sync_fetch_and_add(&flow->bucket, 1);
}

/* `bytes`: of the packet, with its Ethernet header. */
__noinline int choose(struct asic_group *group, __u32 number, __u32 switch_index, const struct asic_key *key,
		      __u32 bytes)
{
	__u64 hash;
	__u32 turn;

	if (!group || !key)
		return -1;
	switch (group->mode) {
	case MODE_HASH:
		return by_number(group, flow_hash(key, group->seed) >> 32);
	case MODE_SPRAY_ROUND_ROBIN:
		turn = turn_of(switch_index, flow_hash(key, group->seed));
		return by_slot(group, turn, group->slots ? turn % group->slots : 0);
	case MODE_SPRAY_RANDOM:
		return by_number(group, bpf_get_prandom_u32());
	case MODE_LEAST_QUEUE:
		/* Among queues alike, random choices would collide further on more often than turns do. */
		turn = turn_of(switch_index, flow_hash(key, group->seed));
		return least_queue(group, turn, key->dscp, bytes);
	case MODE_FLOWLET:
	case MODE_LEAST_QUEUE_FLOWLET:
		hash = flow_hash(key, group->seed);
		return by_flowlet(group, number, switch_index, hash, key->dscp, bytes);
	default:
		return first_alive(group);
	}
}

#endif
