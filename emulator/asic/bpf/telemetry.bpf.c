/* The exit of every egress queue: the qdisc_dequeue tracepoint, attached only when telemetry is on.
 *
 * A root qdisc hands out a chain of packets if its device has several tx queues; switch ports have one.
 * Half of the events carry no packet (the qdisc was asked and had none to give).
 */
#include "queues.h"
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "GPL";

MAPPED_ARRAY(departures, struct asic_departures);

/* A port that was idle sends its burst at once; only behind these departures does the shaper pace. */
#define BURST_DEPARTURES 8

/* Between two packets of a port that still held the second when the first left, the gap is the first
 * one's length over the rate, once the burst is behind. Only gaps after packets of half a full frame and
 * more are judged: after an ACK the gap is no longer than a timer may be late. */
static __always_inline void note_gap(struct asic_departures *departures, const struct asic_port *port,
				     __u64 now, __u32 bytes, bool backlogged)
{
	__u64 ideal = departures->last_bytes, gap = now - departures->last_ns;

	if (departures->backlogged > BURST_DEPARTURES && !port->paused && 2 * ideal >= port->largest_frame &&
	    gap < 1000000000ULL) {
		__u64 actual = gap * port->bytes_per_ns_q32 >> 32;
		__u64 percent = (actual > ideal ? actual - ideal : ideal - actual) * 100 / ideal;
		__u32 bin = percent < GAP_BINS ? percent : GAP_BINS - 1;

		departures->gap_deviation[bin & (GAP_BINS - 1)]++;
	}
	departures->last_ns = now;
	departures->last_bytes = bytes;
	departures->backlogged = backlogged ? departures->backlogged + 1 : 0;
}

SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(dequeued, struct Qdisc *root, const struct netdev_queue *txq, int packets, struct sk_buff *skb)
{
	if (!skb)
		return 0;
	__u32 ifindex = txq->dev->ifindex;

	/* An ifindex counts only within its namespace. */
	if (ifindex >= settings.ports || txq->dev->nd_net.net->ns.inum != settings.netns)
		return 0;
	struct asic_port *port = bpf_map_lookup_elem(&ports, &ifindex);
	struct asic_departures *departed = bpf_map_lookup_elem(&departures, &ifindex);

	if (!port || !port->in_use || !departed)
		return 0;
	__u32 class = ((skb->priority & 0xffff) - 1) & (MAX_CLASSES - 1);
	struct asic_queue *queue = queue_of(ifindex, settings.classes == 1 ? 0 : class);
	__u64 now = bpf_ktime_get_ns(), came = 0;

	if (!queue)
		return 0;
	bpf_probe_read_kernel(&came, sizeof(came), ((struct qdisc_skb_cb *)skb->cb)->data);
	if (came && now - came < 60000000000ULL) {
		__u64 sojourn = now - came;
		__u32 bin = sojourn_bin(sojourn);

		if (bin < SOJOURN_BINS)
			queue->sojourn[bin]++;
		queue->sojourn_sum_ns += sojourn;
		if (sojourn > queue->sojourn_max_ns)
			queue->sojourn_max_ns = sojourn;
	}
	if (packets > 1)
		queue->chained_events++;
	note_gap(departed, port, now, skb->len, root->q.qlen);
	note_depth(queue, ifindex * settings.classes + class, now, depth_of(port, class), true);
	return 0;
}
