/* The forwarding pipeline of every switch: tc ingress of each port. */
#include "groups.h"

char _license[] SEC("license") = "GPL";

struct asic_count { __u64 packets, bytes; };

struct asic_packet_in {
	__u32 ifindex;
	__u32 bytes;
	__u8 frame[MAX_FRAME];
};

MAPPED_ARRAY(drops, struct asic_drops);
MAPPED_ARRAY(rule_counts, struct asic_count);
MAPPED_ARRAY(bucket_counts, struct asic_count);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct asic_packet_in);
} scratch SEC(".maps");

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
	if (key.eth_type == bpf_htons(ETH_P_KICK)) {
		drop(ifindex, DROP_KICK);
		return TC_ACT_STOLEN;  /* it did what it was for: no loss in anybody's counters */
	}
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
		int chosen = group ? choose(group, number, index, &key, skb->len) : -1;

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
	skb->priority = (queue == NO_QUEUE ? 0 : QUEUE_CHOSEN | queue) |
			(port->number & (INGRESS_PORTS - 1)) << CAME_BY_SHIFT;
	if (!skb->sk)
		return bpf_redirect(output, 0);
	/* A packet that still belongs to its sender's socket would count against it (SO_SNDBUF, TCP small
	 * queues) while it waits in our queues. A clone belongs to nobody: here it has left the host. */
	bpf_clone_redirect(skb, output, 0);
	return TC_ACT_STOLEN;
}
