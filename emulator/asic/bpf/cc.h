/* What the congestion controls share: struct_ops of TCP (net/ipv4/bpf_tcp_ca.c).
 *
 * libbpf matches the members of struct tcp_congestion_ops with the running kernel's by name, so only
 * those that are set are declared. Every algorithm's state fits inet_csk(sk)->icsk_ca_priv (>= 104 bytes).
 * Some kernels skip a call now and then, so no state may depend on init() having run: the private area
 * is zeroed by the kernel and zero means "not started".
 */
#ifndef CC_H
#define CC_H

#define tcp_congestion_ops tcp_congestion_ops___kernel
#include "vmlinux.h"
#undef tcp_congestion_ops
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define TCP_CONG_NON_RESTRICTED 0x1
#define TCP_CONG_NEEDS_ECN 0x2
#define TCP_ECN_DEMAND_CWR 4
#define ICSK_ACK_TIMER 2
#define ICSK_ACK_NOW 16
#define MIN_CWND 2u
#define TCP_INIT_CWND 10

#define CC(name, args...) SEC("struct_ops/" #name) BPF_PROG(name, args)
/* The loader replaces this by a name of its own for each run: the list of algorithms is the kernel's. */
#define RUN_NAME "emulator_cc_nam"

struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	__u32 flags;
};

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct inet_connection_sock *csk(struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

static __always_inline void *private(struct sock *sk)
{
	return (void *)csk(sk)->icsk_ca_priv;
}

static __always_inline bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

static __always_inline __u32 at_least(__u32 value, __u32 floor)
{
	return value < floor ? floor : value;
}

#endif
