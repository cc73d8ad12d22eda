/* The histogram of times that emulator/asic/histogram.py reads. Include it after vmlinux.h and bpf_helpers.h. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#define SOJOURN_BINS 416

/* Log-linear, 16 bins an octave from 1024 ns on (within 3.2 %), 64 ns bins below. */
static __always_inline __u32 sojourn_bin(__u64 ns)
{
	__u64 x = ns >> 6;
	__u32 exponent = 0, v;

	if (x < 16)
		return x;
	v = x >> 32 ? 0xffffffff : x;
	if (v >> 16) { exponent += 16; v >>= 16; }
	if (v >> 8) { exponent += 8; v >>= 8; }
	if (v >> 4) { exponent += 4; v >>= 4; }
	if (v >> 2) { exponent += 2; v >>= 2; }
	if (v >> 1) exponent += 1;
	v = (exponent - 3) * 16 + ((x >> (exponent - 4)) & 15);
	return v < SOJOURN_BINS ? v : SOJOURN_BINS - 1;
}

#endif
