/* The entrance of a host's own queue: tc egress of its port, where the host has classes.
 *
 * The DSCP alone decides, as in the switches, so that every program on the host is served by its class,
 * whatever socket options it knows. skb->priority is the id of an HTB class.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

char _license[] SEC("license") = "GPL";

#define ETH_HLEN 14
#define ETH_P_IP 0x0800
#define HTB_MAJOR 1
#define TC_ACT_OK 0

const volatile __u8 class_of_dscp[64];

SEC("tc")
int classify(struct __sk_buff *skb)
{
	__u8 tos = 0;

	if (skb->protocol == bpf_htons(ETH_P_IP))
		bpf_skb_load_bytes(skb, ETH_HLEN + 1, &tos, 1);
	skb->priority = HTB_MAJOR << 16 | (class_of_dscp[(tos >> 2) & 63] + 1);
	return TC_ACT_OK;
}
