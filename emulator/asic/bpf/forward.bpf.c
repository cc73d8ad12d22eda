/* The forwarding pipeline of every switch: tc ingress of each port.
 *
 * Look-up is tuple space search, as Open vSwitch does it (Pfaff et al., NSDI'15): rules with the same
 * mask share a hash table; the masks of a switch are tried in order of their highest priority until no
 * later one can win, which is exactly OpenFlow's priority order. emulator/asic/compile.py builds it.
 */
#include "asic.h"

char _license[] SEC("license") = "GPL";

struct asic_key {
	union {
		struct {
			__be32 ipv4_dst, ipv4_src;
			__u32 in_port;
			__be16 eth_type, l4_src, l4_dst;
			__u8 ip_proto, dscp;
			__u16 table;      /* 2 * switch + generation */
			__u16 mask;
		};
		__u64 word[3];
	};
};

struct asic_rule {
	__u32 priority;
	__u32 counter;
	__u32 output;             /* ifindex, 0: none */
	__u32 group;              /* 0: none */
	__u8 flags;
	__u8 queue;
	__u8 eth_dst[6], eth_src[6];
	__u8 pad[2];
};
enum { SET_ETH_DST = 1, SET_ETH_SRC = 2, TO_CONTROLLER = 4 };

struct asic_mask {
	__u64 word[3];
	__u32 priority;           /* the highest of its rules */
	__u32 pad;
};

struct asic_switch {
	__u32 generation;         /* which of the two tables is in force */
	__u32 pad;
	struct {
		__u32 masks;
		__u32 pad;
		struct asic_mask mask[MAX_MASKS];
	} table[2];
};

struct asic_bucket {
	__u32 port, watch;        /* ifindexes */
	__u32 weight;
	__u32 counter;
	__u8 set_eth_dst, queue;
	__u8 eth_dst[6];
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
	__u32 next;               /* round robin */
	struct asic_bucket bucket[MAX_BUCKETS];
	__u8 slot[GROUP_SLOTS];
};

struct asic_flowlet {
	__u64 seen_ns;
	__u32 group;
	__u32 bucket;
};

struct asic_count { __u64 packets, bytes; };

struct asic_packet_in {
	__u32 ifindex;
	__u32 bytes;
	__u8 frame[MAX_FRAME];
};

MAPPED_ARRAY(switches, struct asic_switch);
MAPPED_ARRAY(groups, struct asic_group);
MAPPED_ARRAY(drops, struct asic_drops);
ARRAY(flowlets, struct asic_flowlet, 0);
MAPPED_ARRAY(rule_counts, struct asic_count);
MAPPED_ARRAY(bucket_counts, struct asic_count);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct asic_packet_in);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct asic_key);
	__type(value, struct asic_rule);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} packet_ins SEC(".maps");

static __always_inline int drop(__u32 ifindex, enum asic_cause cause)
{
	struct asic_drops *drop = bpf_map_lookup_elem(&drops, &ifindex);

	if (drop)
		__sync_fetch_and_add(&drop->packets[cause], 1);
	return TC_ACT_SHOT;
}

/* Each CPU has its own counts (cpu * per_cpu + index) and never nests two of these programs, softirqs
 * being off: no atomics, and no cache line that CPUs throw to and fro. */
static __always_inline void count(void *counts, __u32 per_cpu, __u32 index, __u32 bytes)
{
	__u32 place = bpf_get_smp_processor_id() * per_cpu + index;
	struct asic_count *entry = bpf_map_lookup_elem(counts, &place);

	if (entry) {
		entry->packets++;
		entry->bytes += bytes;
	}
}

/* Fill `key` from the headers. A fragment has ports 0, as in OpenFlow, so that all of a datagram take
 * one path. False if the frame ends inside a header. */
static __always_inline bool parse(struct __sk_buff *skb, struct asic_key *key)
{
	const __u32 wanted = ETH_HLEN + sizeof(struct iphdr);
	struct ethhdr *eth = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;

	if ((void *)eth + wanted > end) {
		bpf_skb_pull_data(skb, skb->len < wanted ? ETH_HLEN : wanted);
		eth = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
		if ((void *)(eth + 1) > end)
			return false;
	}
	key->eth_type = eth->h_proto;
	if (eth->h_proto != bpf_htons(ETH_P_IP))
		return true;
	struct iphdr *ip = (void *)(eth + 1);

	if ((void *)(ip + 1) > end)
		return false;
	key->ipv4_dst = ip->daddr;
	key->ipv4_src = ip->saddr;
	key->ip_proto = ip->protocol;
	key->dscp = ip->tos >> 2;
	if ((ip->protocol != IPPROTO_TCP && ip->protocol != IPPROTO_UDP) || ip->frag_off & bpf_htons(0x3fff))
		return true;
	if (ip->ihl == 5 && (void *)(ip + 1) + sizeof(__be32) <= end) {
		__be16 *direct = (void *)(ip + 1);

		key->l4_src = direct[0];
		key->l4_dst = direct[1];
		return true;
	}
	__be16 l4_ports[2];

	if (bpf_skb_load_bytes(skb, ETH_HLEN + ip->ihl * 4, l4_ports, sizeof(l4_ports)))
		return false;
	key->l4_src = l4_ports[0];
	key->l4_dst = l4_ports[1];
	return true;
}

static __always_inline struct asic_rule *look_up(struct asic_switch *sw, __u32 index,
						 const struct asic_key *packet)
{
	__u32 generation = sw->generation & 1;
	struct asic_rule *best = NULL;

	for (__u32 i = 0; i < MAX_MASKS; i++) {
		struct asic_mask *mask = &sw->table[generation].mask[i];
		struct asic_rule *rule;
		struct asic_key key;

		if (i >= sw->table[generation].masks || (best && best->priority >= mask->priority))
			break;
		key.word[0] = packet->word[0] & mask->word[0];
		key.word[1] = packet->word[1] & mask->word[1];
		key.word[2] = packet->word[2] & mask->word[2];
		key.table = 2 * index + generation;
		key.mask = i;
		rule = bpf_map_lookup_elem(&rules, &key);
		if (rule && (!best || rule->priority > best->priority))
			best = rule;
	}
	return best;
}

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

	return bucket_alive(bucket_at(group, chosen)) ? (int)chosen : any_alive(group, number);
}

/* Uniform numbers give each member its share by weight. */
static __always_inline int by_number(struct asic_group *group, __u32 number)
{
	return by_slot(group, number, (__u64)number * group->slots >> 32);
}

/* The live member whose queue drains soonest; members are visited from a random one on, so that ties
 * are broken evenly. */
__noinline int least_queue(struct asic_group *group, __u32 dscp)
{
	__u64 shortest = ~0ULL;
	int chosen = -1;

	if (!group)
		return -1;
	__u32 n = group->buckets, first = (__u64)bpf_get_prandom_u32() * n >> 32;

	for (__u32 i = 0; i < MAX_BUCKETS && i < n; i++) {
		__u32 index = first + i < n ? first + i : first + i - n;
		struct asic_bucket *bucket = bucket_at(group, index);
		struct asic_port *port = port_at(bucket->port);

		if (!port || !bucket_alive(bucket))
			continue;
		__u32 class = bucket->queue == NO_QUEUE ? class_of(port, dscp) : bucket->queue;
		__u64 delay = depth_of(port, class) * port->ns_per_byte_q16;

		if (delay < shortest) {
			shortest = delay;
			chosen = index;
		}
	}
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
				      __u64 hash, __u32 dscp)
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
					       least_queue(group, dscp);
	flowlet->group = number;
	flowlet->bucket = chosen;
	flowlet->seen_ns = now;
	return chosen;
}

__noinline int choose(struct asic_group *group, __u32 number, __u32 switch_index, const struct asic_key *key)
{
	__u64 hash;

	if (!group || !key)
		return -1;
	switch (group->mode) {
	case MODE_HASH:
		return by_number(group, flow_hash(key, group->seed) >> 32);
	case MODE_SPRAY_ROUND_ROBIN: {
		__u32 turn = __sync_fetch_and_add(&group->next, 1);

		return by_slot(group, turn, group->slots ? turn % group->slots : 0);
	}
	case MODE_SPRAY_RANDOM:
		return by_number(group, bpf_get_prandom_u32());
	case MODE_LEAST_QUEUE:
		return least_queue(group, key->dscp);
	case MODE_FLOWLET:
	case MODE_LEAST_QUEUE_FLOWLET:
		hash = flow_hash(key, group->seed);
		return by_flowlet(group, number, switch_index, hash, key->dscp);
	default:
		return first_alive(group);
	}
}

static __always_inline void packet_in(struct __sk_buff *skb, __u32 ifindex)
{
	struct asic_packet_in *record;
	struct asic_drops *drop = bpf_map_lookup_elem(&drops, &ifindex);
	__u32 bytes = skb->len, zero = 0;

	record = bpf_map_lookup_elem(&scratch, &zero);
	if (!record || !drop)
		return;
	record->ifindex = ifindex;
	record->bytes = bytes;
	/* Written so that 6.1's verifier sees 1 to MAX_FRAME. */
	bytes = bytes > MAX_FRAME ? MAX_FRAME - 1 : bytes - 1;
	asm volatile("" : "+r"(bytes));
	bytes = (bytes & (MAX_FRAME - 1)) + 1;
	if (bpf_skb_load_bytes(skb, 0, record->frame, bytes) ||
	    bpf_ringbuf_output(&packet_ins, record, offsetof(struct asic_packet_in, frame) + bytes, 0))
		__sync_fetch_and_add(&drop->packet_ins_lost, 1);
}

SEC("tc")
int forward(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex, output;
	struct asic_port *port = port_at(ifindex), *out;
	struct asic_key key = {};
	__u8 queue;

	if (!port || !port->in_use)
		return TC_ACT_OK;
	if (port->loss_in_q48 && hit_by_error(port->loss_in_q48, skb->len))
		return drop(ifindex, DROP_WIRE_LOSS);
	if (!parse(skb, &key))
		return drop(ifindex, DROP_MALFORMED);
	if (key.eth_type == bpf_htons(ETH_P_KICK))
		return drop(ifindex, DROP_KICK);
	key.in_port = port->number;

	__u32 index = port->switch_index;
	struct asic_switch *sw = bpf_map_lookup_elem(&switches, &index);
	struct asic_rule *rule = sw ? look_up(sw, index, &key) : NULL;

	if (!rule)
		return drop(ifindex, DROP_NO_RULE);
	count(&rule_counts, settings.rule_counts, rule->counter, skb->len);
	if (rule->flags & TO_CONTROLLER)
		packet_in(skb, ifindex);
	output = rule->output;
	queue = rule->queue;
	if (rule->flags & SET_ETH_DST)
		bpf_skb_store_bytes(skb, 0, rule->eth_dst, sizeof(rule->eth_dst), 0);
	if (rule->flags & SET_ETH_SRC)
		bpf_skb_store_bytes(skb, 6, rule->eth_src, sizeof(rule->eth_src), 0);
	if (rule->group) {
		__u32 number = rule->group;
		struct asic_group *group = bpf_map_lookup_elem(&groups, &number);
		int chosen = group ? choose(group, number, index, &key) : -1;

		if (chosen < 0)
			return drop(ifindex, DROP_NO_LIVE_BUCKET);
		struct asic_bucket *bucket = bucket_at(group, chosen);

		count(&bucket_counts, settings.bucket_counts, bucket->counter, skb->len);
		output = bucket->port;
		if (bucket->queue != NO_QUEUE)
			queue = bucket->queue;
		if (bucket->set_eth_dst)
			bpf_skb_store_bytes(skb, 0, bucket->eth_dst, sizeof(bucket->eth_dst), 0);
	}
	if (!output)
		return rule->flags & TO_CONTROLLER ? TC_ACT_SHOT : drop(ifindex, DROP_BY_RULE);
	if (output == ifindex)
		return drop(ifindex, DROP_SAME_PORT);
	/* a member of a group was found alive when it was chosen */
	if (!rule->group) {
		out = port_at(output);
		if (!out || !out->in_use || !alive(out))
			return drop(ifindex, DROP_PORT_DOWN);
	}
	skb->priority = queue == NO_QUEUE ? 0 : QUEUE_CHOSEN | queue;
	if (!skb->sk)
		return bpf_redirect(output, 0);
	/* A packet that still belongs to its sender's socket would count against it (SO_SNDBUF, TCP small
	 * queues) while it waits in our queues. A clone belongs to nobody: here it has left the host. */
	bpf_clone_redirect(skb, output, 0);
	return TC_ACT_STOLEN;
}
