/* DCTCP (RFC 8257) for kernels without tcp_dctcp; section numbers are the RFC's.
 *
 * The receiver echoes each packet's CE mark exactly (3.2); the sender estimates the marked fraction once
 * a window (3.3) and cuts its window in proportion to it (3.4), or by half after a loss (3.5).
 */
#include "cc.h"

char _license[] SEC("license") = "GPL";

#define ONE 1024u        /* alpha in units of 1/1024 */
#define GAIN_SHIFT 4     /* g = 1/16, as 3.3 recommends */

struct dctcp {
	__u32 started;
	__u32 window_end;        /* sequence number that ends the observation window */
	__u32 delivered;         /* tp->delivered and delivered_ce when it began */
	__u32 delivered_ce;
	__u32 alpha;
	__u32 rcv_nxt;           /* receiver: what the last ACK said, */
	__u32 ce;                /* and whether the last packet was marked */
	__u32 loss_cwnd;
	__u32 seen_cwnd;         /* at the last ACK, with tp->delivered */
	__u32 seen_delivered;
};

__u64 impossible_windows;  /* the loader reads it: a run with any is not to be trusted */

static __always_inline void begin_window(struct tcp_sock *tp, struct dctcp *cc)
{
	cc->window_end = tp->snd_nxt;
	cc->delivered = tp->delivered;
	cc->delivered_ce = tp->delivered_ce;
}

static __always_inline void start(struct tcp_sock *tp, struct dctcp *cc)
{
	if (cc->started)
		return;
	cc->started = 1;
	cc->alpha = ONE;         /* 3.3: the first cut is a full one */
	cc->rcv_nxt = tp->rcv_nxt;
	begin_window(tp, cc);
}

void CC(dctcp_init, struct sock *sk)
{
	start(tcp_sk(sk), private(sk));
}

/* A kernel that skips ssthresh() takes what lies on its stack for the answer, and the window follows it.
 * A window grows by what was delivered and no more, or back to where it was before a loss. */
static __always_inline void look_for_skips(struct tcp_sock *tp, struct dctcp *cc)
{
	__u32 most = at_least(cc->seen_cwnd + (tp->delivered - cc->seen_delivered), cc->loss_cwnd);

	if (cc->seen_cwnd && tp->snd_cwnd > most + TCP_INIT_CWND)
		__sync_fetch_and_add(&impossible_windows, 1);
	cc->seen_cwnd = tp->snd_cwnd;
	cc->seen_delivered = tp->delivered;
}

/* 3.3: alpha = (1 - g) * alpha + g * fraction of the window's packets that were marked */
void CC(dctcp_in_ack, struct sock *sk, __u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *cc = private(sk);

	start(tp, cc);
	look_for_skips(tp, cc);
	if (before(tp->snd_una, cc->window_end))
		return;
	__u32 acked = tp->delivered - cc->delivered, marked = tp->delivered_ce - cc->delivered_ce;
	__u32 decay = cc->alpha >> GAIN_SHIFT;
	__u32 alpha = cc->alpha - (decay ? decay : cc->alpha);

	if (marked) {
		alpha += (marked << (10 - GAIN_SHIFT)) / at_least(acked, 1);
		alpha = alpha > ONE ? ONE : alpha;
	}
	cc->alpha = alpha;
	begin_window(tp, cc);
}

/* 3.4: cwnd = cwnd * (1 - alpha / 2) */
__u32 CC(dctcp_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *cc = private(sk);

	start(tp, cc);
	cc->loss_cwnd = tp->snd_cwnd;
	return at_least(tp->snd_cwnd - (__u32)((__u64)tp->snd_cwnd * cc->alpha >> 11), MIN_CWND);
}

/* 3.5: packet loss is met as by any other TCP: half the window; a timeout starts the estimate anew */
void CC(dctcp_set_state, struct sock *sk, __u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *cc = private(sk);

	if (state == TCP_CA_Recovery && tp->snd_ssthresh > cc->loss_cwnd / 2)
		tp->snd_ssthresh = at_least(cc->loss_cwnd / 2, MIN_CWND);
	else if (state == TCP_CA_Loss)
		cc->alpha = ONE;
}

static __always_inline void echo(struct tcp_sock *tp, bool ce)
{
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/* 3.2: when the mark changes, first acknowledge what came with the old one, then the new at once */
void CC(dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *cc = private(sk);
	bool ce = event == CA_EVENT_ECN_IS_CE;

	if (event != CA_EVENT_ECN_IS_CE && event != CA_EVENT_ECN_NO_CE)
		return;
	start(tp, cc);
	if (cc->ce != ce) {
		if (csk(sk)->icsk_ack.pending & ICSK_ACK_TIMER) {
			echo(tp, cc->ce);
			bpf_tcp_send_ack(tp, cc->rcv_nxt);
		}
		csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	cc->rcv_nxt = tp->rcv_nxt;
	cc->ce = ce;
	echo(tp, ce);
}

void CC(dctcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

__u32 CC(dctcp_undo_cwnd, struct sock *sk)
{
	struct dctcp *cc = private(sk);

	return at_least(tcp_sk(sk)->snd_cwnd, cc->loss_cwnd);
}

SEC(".struct_ops")
struct tcp_congestion_ops dctcp = {
	.init = (void *)dctcp_init,
	.in_ack_event = (void *)dctcp_in_ack,
	.ssthresh = (void *)dctcp_ssthresh,
	.set_state = (void *)dctcp_set_state,
	.cwnd_event = (void *)dctcp_cwnd_event,
	.cong_avoid = (void *)dctcp_cong_avoid,
	.undo_cwnd = (void *)dctcp_undo_cwnd,
	.flags = TCP_CONG_NEEDS_ECN | TCP_CONG_NON_RESTRICTED,
	.name = RUN_NAME,
};
