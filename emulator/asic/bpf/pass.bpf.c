/* An XDP program that lets everything pass: with one, a veth receives through NAPI, which can be threaded. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

SEC("xdp.frags")
int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}
