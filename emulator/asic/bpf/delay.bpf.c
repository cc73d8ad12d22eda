/* Links whose delay is made by netem: across from one inner end to the other, and how late each packet left.
 *
 * Attached in the namespace of the inner ends (emulator/fabric/veths.py), whose ifindexes differ in the
 * lowest bit. What comes in at one end is sent out of the other, whose root qdisc is netem with nothing but
 * a delay. Arrivals are counted where they are seen without exception, in the tc program; lateness is that
 * of the departures which the tracepoint sees.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "histogram.h"

#define TC_ACT_STOLEN 4
/* netem keeps when a packet is due in the first 8 of a qdisc's 20 bytes in skb->cb (struct netem_skb_cb) */
#define CAME_WORD 2

char _license[] SEC("license") = "GPL";

struct crossings {             /* emulator/delay/record.py mirrors it */
	__u64 arrived;
	__u64 late[SOJOURN_BINS];  /* packets by how long after they were due they left */
};

struct crossing_settings {
	__u64 delay_ns;
	__u32 netns;               /* inode of the namespace of the inner ends */
	__u32 pad;
};

const volatile struct crossing_settings settings;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct crossings);
} crossed SEC(".maps");

SEC("tc")
int across(struct __sk_buff *skb)
{
	__u32 zero = 0, other = skb->ifindex ^ 1;
	__u64 now = bpf_ktime_get_ns();
	struct crossings *seen = bpf_map_lookup_elem(&crossed, &zero);

	if (seen)
		__sync_fetch_and_add(&seen->arrived, 1);
	skb->cb[CAME_WORD] = now;
	skb->cb[CAME_WORD + 1] = now >> 32;
	if (!skb->sk)
		return bpf_redirect(other, 0);
	/* On the wire a packet no longer counts as queued at its sender (TCP small queues, and TCP sends
	 * nothing again that it takes for queued: skb_still_in_host_queue). A clone belongs to nobody. */
	bpf_clone_redirect(skb, other, 0);
	return TC_ACT_STOLEN;
}

SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(left, struct Qdisc *root, const struct netdev_queue *txq, int packets, struct sk_buff *skb)
{
	if (!skb || txq->dev->nd_net.net->ns.inum != settings.netns)
		return 0;
	__u32 zero = 0;
	__u64 now = bpf_ktime_get_ns(), came = 0;
	struct crossings *seen = bpf_map_lookup_elem(&crossed, &zero);

	bpf_probe_read_kernel(&came, sizeof(came), ((struct qdisc_skb_cb *)skb->cb)->data + 4 * CAME_WORD);
	__u64 due = came + settings.delay_ns;
	__u32 bin = sojourn_bin(now > due ? now - due : 0);

	if (seen && came && bin < SOJOURN_BINS)
		__sync_fetch_and_add(&seen->late[bin], 1);
	return 0;
}
