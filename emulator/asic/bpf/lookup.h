/* From a packet's headers to the rule that it matches.
 *
 * Tuple space search, as Open vSwitch does it (Pfaff et al., NSDI'15): rules with the same mask share a
 * hash table; the masks of a switch are tried in order of their highest priority until no later one can
 * win, which is exactly OpenFlow's priority order. emulator/asic/tuplespace.py lays it out.
 */
#ifndef LOOKUP_H
#define LOOKUP_H

#include "asic.h"

struct asic_key {
	union {
		struct {
			__be32 ipv4_dst, ipv4_src;
			__u32 in_port;
			__be16 eth_type, l4_src, l4_dst;
			__u8 ip_proto, dscp;
			__u16 table;      /* 2 * switch + generation */
			__u16 mask;
		};
		__u64 word[3];
	};
};

struct asic_rule {
	__u32 priority;
	__u32 counter;
	__u32 output;             /* ifindex, 0: none */
	__u32 group;              /* 0: none */
	__u8 flags;
	__u8 queue;
	__u8 eth_dst[6], eth_src[6];
	__u8 pad[2];
};
enum { SET_ETH_DST = 1, SET_ETH_SRC = 2, TO_CONTROLLER = 4 };

struct asic_mask {
	__u64 word[3];
	__u32 priority;           /* the highest of its rules */
	__u32 pad;
};

struct asic_switch {
	__u32 generation;         /* which of the two tables is in force */
	__u32 pad;
	struct {
		__u32 masks;
		__u32 pad;
		struct asic_mask mask[MAX_MASKS];
	} table[2];
};

MAPPED_ARRAY(switches, struct asic_switch);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct asic_key);
	__type(value, struct asic_rule);
} rules SEC(".maps");

/* Fill `key` from the headers. A fragment has ports 0, as in OpenFlow, so that all of a datagram take
 * one path. False if the frame ends inside a header. */
static __always_inline bool parse(struct __sk_buff *skb, struct asic_key *key)
{
	const __u32 wanted = ETH_HLEN + sizeof(struct iphdr);
	struct ethhdr *eth = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;

	if ((void *)eth + wanted > end) {
		bpf_skb_pull_data(skb, skb->len < wanted ? ETH_HLEN : wanted);
		eth = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
		if ((void *)(eth + 1) > end)
			return false;
	}
	key->eth_type = eth->h_proto;
	if (eth->h_proto != bpf_htons(ETH_P_IP))
		return true;
	struct iphdr *ip = (void *)(eth + 1);

	if ((void *)(ip + 1) > end)
		return false;
	key->ipv4_dst = ip->daddr;
	key->ipv4_src = ip->saddr;
	key->ip_proto = ip->protocol;
	key->dscp = ip->tos >> 2;
	if ((ip->protocol != IPPROTO_TCP && ip->protocol != IPPROTO_UDP) || ip->frag_off & bpf_htons(0x3fff))
		return true;
	if (ip->ihl == 5 && (void *)(ip + 1) + sizeof(__be32) <= end) {
		__be16 *direct = (void *)(ip + 1);

		key->l4_src = direct[0];
		key->l4_dst = direct[1];
		return true;
	}
	__be16 l4_ports[2];

	if (bpf_skb_load_bytes(skb, ETH_HLEN + ip->ihl * 4, l4_ports, sizeof(l4_ports)))
		return false;
	key->l4_src = l4_ports[0];
	key->l4_dst = l4_ports[1];
	return true;
}

static __always_inline struct asic_rule *look_up(struct asic_switch *sw, __u32 index,
						 const struct asic_key *packet)
{
	__u32 generation = sw->generation & 1;
	struct asic_rule *best = NULL;

	for (__u32 i = 0; i < MAX_MASKS; i++) {
		struct asic_mask *mask = &sw->table[generation].mask[i];
		struct asic_rule *rule;
		struct asic_key key;

		if (i >= sw->table[generation].masks || (best && best->priority >= mask->priority))
			break;
		key.word[0] = packet->word[0] & mask->word[0];
		key.word[1] = packet->word[1] & mask->word[1];
		key.word[2] = packet->word[2] & mask->word[2];
		key.table = 2 * index + generation;
		key.mask = i;
		rule = bpf_map_lookup_elem(&rules, &key);
		if (rule && (!best || rule->priority > best->priority))
			best = rule;
	}
	return best;
}

#endif
