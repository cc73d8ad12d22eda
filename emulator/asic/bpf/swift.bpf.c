/* Delay-based congestion control after Swift (Kumar et al., SIGCOMM'20), section numbers are the paper's.
 *
 * One target for the whole round trip (the paper splits fabric and endpoint delay by NIC time stamps,
 * which veths do not have): target = base + range / sqrt(cwnd) within limits (3.5, flow scaling);
 * additive increase below it, multiplicative decrease once a round trip above it (3.1, algorithm 1).
 * The window does not fall below one packet: below it the paper paces, here a flow of one packet a round
 * trip is the least.
 */
#include "cc.h"

char _license[] SEC("license") = "GPL";

const volatile struct {
	__u32 target_us;         /* base target delay of a round trip */
	__u32 scaling_us;        /* range of flow scaling, 0: none */
	__u32 increase_q8;       /* packets a round trip, in 1/256 */
	__u32 beta_q10;          /* of the decrease, in 1/1024 */
	__u32 max_decrease_q10;
} swift_settings;

struct swift {
	__u32 cwnd_q8;           /* packets in 1/256 */
	__u32 rtt_us;
	__u64 decreased_ns;
	__u32 loss_cwnd;
};

/* 1/sqrt(cwnd) in 1/1024, by the integer square root of 2^20 / cwnd */
static __always_inline __u32 inverse_sqrt_q10(__u32 cwnd_q8)
{
	__u32 x = (1u << 28) / at_least(cwnd_q8, 256), root = 0;

	for (int bit = 10; bit >= 0; bit--) {
		__u32 trial = root | 1u << bit;

		if (trial * trial <= x)
			root = trial;
	}
	return root;
}

static __always_inline __u32 target_delay_us(__u32 cwnd_q8)
{
	return swift_settings.target_us + (swift_settings.scaling_us * inverse_sqrt_q10(cwnd_q8) >> 10);
}

static __always_inline void set_window(struct tcp_sock *tp, struct swift *cc, __u32 cwnd_q8)
{
	__u32 most = tp->snd_cwnd_clamp < 1u << 23 ? tp->snd_cwnd_clamp : 1u << 23;

	cwnd_q8 = at_least(cwnd_q8, 256);
	cc->cwnd_q8 = cwnd_q8 >> 8 > most ? most << 8 : cwnd_q8;
	tp->snd_cwnd = cc->cwnd_q8 >> 8;
}

/* 3.1: at most one decrease a round trip; also after a loss (3.6) */
static __always_inline bool may_decrease(struct swift *cc)
{
	__u64 now = bpf_ktime_get_ns();

	if (now - cc->decreased_ns < (__u64)cc->rtt_us * 1000)
		return false;
	cc->decreased_ns = now;
	return true;
}

void CC(swift_init, struct sock *sk)
{
	struct swift *cc = private(sk);

	cc->cwnd_q8 = tcp_sk(sk)->snd_cwnd << 8;
}

void CC(swift_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct swift *cc = private(sk);

	if (sample->rtt_us > 0)
		cc->rtt_us = sample->rtt_us;
}

void CC(swift_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct swift *cc = private(sk);
	__u32 cwnd_q8 = cc->cwnd_q8 ? cc->cwnd_q8 : tp->snd_cwnd << 8;

	if (!cc->rtt_us)
		return;
	__u32 target_us = target_delay_us(cwnd_q8);

	if (cc->rtt_us < target_us) {
		if (tp->max_packets_out * 2 < tp->snd_cwnd)
			return;  /* the application does not fill the window: no reason to widen it */
		cwnd_q8 += swift_settings.increase_q8 * acked / at_least(cwnd_q8 >> 8, 1);
	} else if (may_decrease(cc)) {
		__u32 cut = (__u64)swift_settings.beta_q10 * (cc->rtt_us - target_us) / cc->rtt_us;

		if (cut > swift_settings.max_decrease_q10)
			cut = swift_settings.max_decrease_q10;
		cwnd_q8 -= (__u64)cwnd_q8 * cut >> 10;
	}
	set_window(tp, cc, cwnd_q8);
}

__u32 CC(swift_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct swift *cc = private(sk);
	__u32 cwnd = tp->snd_cwnd;

	cc->loss_cwnd = cwnd;
	if (may_decrease(cc))
		cwnd -= (__u64)cwnd * swift_settings.max_decrease_q10 >> 10;
	cwnd = at_least(cwnd, MIN_CWND);
	cc->cwnd_q8 = cwnd << 8;
	return cwnd;
}

__u32 CC(swift_undo_cwnd, struct sock *sk)
{
	struct swift *cc = private(sk);
	__u32 cwnd = at_least(tcp_sk(sk)->snd_cwnd, cc->loss_cwnd);

	cc->cwnd_q8 = cwnd << 8;
	return cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops swift = {
	.init = (void *)swift_init,
	.pkts_acked = (void *)swift_pkts_acked,
	.cong_avoid = (void *)swift_cong_avoid,
	.ssthresh = (void *)swift_ssthresh,
	.undo_cwnd = (void *)swift_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = RUN_NAME,
};
