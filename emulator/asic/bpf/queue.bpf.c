/* The entrance of every egress queue: tc egress of each port, before its HTB tree.
 *
 * Chooses the class (skb->priority is the class id, so HTB needs no filters), marks ECN on the real
 * depth of the class's leaf, notes when the packet came (skb->cb survives HTB and the leaf). The leaf
 * itself drops at its limit, under the kernel's lock, so its count is exact; observe() reads it.
 */
#include "queues.h"

char _license[] SEC("license") = "GPL";

MAPPED_ARRAY(crossings, __u64);  /* bytes, by (egress ifindex, class, number of the ingress port) */

struct asic_rest {
	__u8 bytes[MAX_FRAME];
};

MAPPED_ARRAY(rest, struct asic_rest);  /* of the frame for emit(): what a test run has no room for */

static __always_inline bool set_ce(struct __sk_buff *skb, __u8 tos)
{
	return (tos & 3) && (tos & 3) != 3 && bpf_skb_ecn_set_ce(skb);
}

SEC("tc")
int queue(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex, class, depth, bytes = skb->len;
	__u32 came_by = skb->priority >> CAME_BY_SHIFT & (INGRESS_PORTS - 1);
	struct asic_port *port = bpf_map_lookup_elem(&ports, &ifindex);
	struct asic_queue *queue;
	__u8 tos = 0;

	if (!port || !port->in_use)
		return TC_ACT_OK;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		__u8 *header = (void *)(long)skb->data;

		if (header + ETH_HLEN + 2 <= (__u8 *)(long)skb->data_end)
			tos = header[ETH_HLEN + 1];
		else
			bpf_skb_load_bytes(skb, ETH_HLEN + 1, &tos, 1);
	}
	class = skb->priority & QUEUE_CHOSEN ? skb->priority & (MAX_CLASSES - 1) : class_of(port, tos >> 2);
	if (settings.classes == 1)
		class = 0;
	skb->priority = HTB_MAJOR << 16 | (class + 1);
	queue = queue_of(ifindex, class);
	if (!queue)
		return TC_ACT_OK;
	if (port->loss_out_q48 && hit_by_error(port->loss_out_q48, bytes)) {
		__sync_fetch_and_add(&queue->lost_packets, 1);
		return TC_ACT_SHOT;
	}
	depth = depth_of(port, class);
	if (port->mark_bytes[class] && depth > port->mark_bytes[class] && set_ce(skb, tos))
		__sync_fetch_and_add(&queue->marked_packets, 1);
	if (bytes > port->largest_frame)
		__sync_fetch_and_add(&queue->oversize_packets, 1);
	if (settings.crossings && depth + bytes <= port->limit_bytes[class]) {
		__u32 place = (ifindex * MAX_CLASSES + class) * INGRESS_PORTS + came_by;
		__u64 *crossed = bpf_map_lookup_elem(&crossings, &place);

		if (crossed)
			__sync_fetch_and_add(crossed, bytes);
	}
	if (!settings.telemetry)
		return TC_ACT_OK;

	__u64 now = bpf_ktime_get_ns();

	__sync_fetch_and_add(&queue->arrived_packets, 1);
	__sync_fetch_and_add(&queue->arrived_bytes, bytes);
	if (tos & 3)
		__sync_fetch_and_add(&queue->ect_packets, 1);
	/* The leaf will refuse it if it does not fit. An empty queue that a packet only passes through is
	 * no change worth a sample. */
	note_depth(queue, ifindex * settings.classes + class, now,
		   depth + bytes > port->limit_bytes[class] ? depth : depth + bytes, depth);
	skb->cb[0] = (__u32)now;
	skb->cb[1] = (__u32)(now >> 32);
	return TC_ACT_OK;
}

/* The leaf qdisc with this handle, from the hash of a device's qdiscs (net/sched/sch_api.c). */
static __always_inline __u64 find_qdisc(__u64 dev, __u32 handle)
{
	__u32 bucket = (handle * 0x61C88647u) >> 28;  /* hash_min(handle, 4) */
	__u64 node = 0;

	READ_FIELD(node, dev, struct net_device, qdisc_hash[bucket].first);
	for (int i = 0; i < 32 && node; i++) {
		__u64 qdisc = node - bpf_core_field_offset(struct Qdisc, hash);
		__u32 found = 0;

		READ_FIELD(found, qdisc, struct Qdisc, handle);
		if (found == handle)
			return qdisc;
		READ_FIELD(node, node, struct hlist_node, next);
	}
	return 0;
}

/* Run by the loader through BPF_PROG_TEST_RUN with a port's ifindex, never by a packet: learns where the
 * kernel keeps the device and its leaves, and copies the leaves' own counters. Returns the number of
 * leaves found, or -1 if one is another than before: somebody replaced it. */
SEC("tc")
int observe(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex;
	struct asic_port *port = bpf_map_lookup_elem(&ports, &ifindex);
	int found = 0, replaced = 0;
	__u64 dev = 0;

	if (!port)
		return 0;
	READ_FIELD(dev, skb, struct sk_buff, dev);  /* the context is the kernel's own sk_buff */
	port->dev = dev;
	for (__u32 class = 0; class < MAX_CLASSES && class < settings.classes; class++) {
		struct asic_queue *queue = queue_of(ifindex, class);
		__u64 leaf = find_qdisc(dev, (LEAF_MAJOR + class) << 16);
		struct gnet_stats_queue held = {};
		__u32 packets = 0;

		if (!queue)
			return 0;
		if (port->leaf[class] && port->leaf[class] != leaf)
			replaced = 1;
		port->leaf[class] = leaf;
		if (!leaf)
			continue;
		found++;
		READ_FIELD(held, leaf, struct Qdisc, qstats);
		READ_FIELD(queue->sent_packets, leaf, struct Qdisc, bstats.packets);
		READ_FIELD(queue->sent_bytes, leaf, struct Qdisc, bstats.bytes);
		queue->dropped_packets = held.drops;
		/* a qdisc counts its packets in its head; qstats.qlen is filled in for dumps only */
		READ_FIELD(packets, leaf, struct Qdisc, q.qlen);
		queue->held_packets = packets;
		queue->held_bytes = held.backlog;
	}
	return replaced ? -1 : found;
}

/* Run by the loader like observe(): sends the frame out of the port through its queue. A test run takes some
 * 3.5 kB of a frame at the most; as many bytes as skb->mark says are appended from `rest`. Returns -1 where
 * there is no memory for them. The clone belongs to no socket; a packet that does would keep its namespace
 * alive while it waits behind a shut gate. */
SEC("tc")
int emit(struct __sk_buff *skb)
{
	__u32 begun = skb->len, more = skb->mark, zero = 0;
	struct asic_rest *tail = bpf_map_lookup_elem(&rest, &zero);

	skb->mark = 0;
	if (more) {
		if (!tail || more > MAX_FRAME || bpf_skb_change_tail(skb, begun + more, 0))
			return -1;
		/* Written so that 6.1's verifier sees 1 to MAX_FRAME. */
		more--;
		asm volatile("" : "+r"(more));
		if (bpf_skb_store_bytes(skb, begun, tail->bytes, (more & (MAX_FRAME - 1)) + 1, 0))
			return -1;
	}
	bpf_clone_redirect(skb, skb->ifindex, 0);
	return 0;
}
