/* On the ports of Open vSwitch's kernel datapath: a packet leaves its sender's socket here.
 *
 * A veth hands a packet on with its owner (skb->sk), so a packet in a switch's queue would count against
 * its sender (TCP small queues, SO_SNDBUF: net/ipv4/tcp_output.c) as if it had not left the host, and no
 * flow would ever hold more than a millisecond of a queue. A clone belongs to nobody.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#define TC_ACT_OK 0
#define TC_ACT_STOLEN 4

char _license[] SEC("license") = "GPL";

SEC("tc")
int release(struct __sk_buff *skb)
{
	if (!skb->sk)
		return TC_ACT_OK;
	bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS); /* it comes back to this port, free */
	return TC_ACT_STOLEN;
}
