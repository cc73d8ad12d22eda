/* The egress queues as seen packet by packet: written at the entrance (queue) and the exit (telemetry). */
#ifndef QUEUES_H
#define QUEUES_H

#include "asic.h"

MAPPED_ARRAY(queues, struct asic_queue);
MAPPED_ARRAY(samples, struct asic_sample);
MAPPED_ARRAY(sample_head, __u64);

static __always_inline struct asic_queue *queue_of(__u32 ifindex, __u32 class)
{
	__u32 index = ifindex * settings.classes + class;

	return bpf_map_lookup_elem(&queues, &index);
}

static __always_inline void write_sample(struct asic_queue *queue, __u32 index, __u64 time_ns,
					 __u64 depth_bytes)
{
	__u32 zero = 0;
	__u64 *head = bpf_map_lookup_elem(&sample_head, &zero);

	if (!head)
		return;
	__u32 place = __sync_fetch_and_add(head, 1) & (settings.samples - 1);
	struct asic_sample *sample = bpf_map_lookup_elem(&samples, &place);

	if (!sample)
		return;
	sample->time_ns = time_ns;
	sample->queue = index;
	sample->depth_bytes = depth_bytes;
	queue->sampled_ns = time_ns;
	queue->sampled_bytes = depth_bytes;
}

/* From now on the queue holds `depth` bytes; `sample`: that is worth a sample. At most one sample in
 * sample_gap_ns, only on change. A depth that was passed over, for the gap or as not worth one, and turns out
 * to have been held for longer than the gap is written at the next change, with the time since which it held;
 * the one that is held at the end of a recording is for who ends it (telemetry.py). */
static __always_inline void note_depth(struct asic_queue *queue, __u32 index, __u64 now, __u64 depth,
				       bool sample)
{
	__u64 before = queue->depth_bytes, changed = queue->changed_ns;

	if (depth != before) {
		if (now > changed && changed)
			queue->depth_byte_ns += before * (now - changed);
		queue->depth_bytes = depth;
		queue->changed_ns = now;
	}
	if (depth > queue->depth_max_bytes)
		queue->depth_max_bytes = depth;
	if (now - queue->sampled_ns < settings.sample_gap_ns)
		return;
	if (before != queue->sampled_bytes && now - changed >= settings.sample_gap_ns)
		write_sample(queue, index, changed, before);
	if (sample && depth != queue->sampled_bytes)
		write_sample(queue, index, now, depth);
}

#endif
