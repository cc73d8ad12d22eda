/* The propagation delay of every link of a fabric: relay STATS_FD DELAY_NS SLOTS SLOT_BYTES PARENT
 *
 * Runs in a namespace that holds nothing but the inner ends of the links, two for each link, whose
 * ifindexes differ in the lowest bit. One AF_PACKET ring takes what arrives at any of them, with the
 * kernel's time of arrival; since all links have the same delay the ring is in the order of departure, and
 * the relay sleeps until its head is due and sends it out of the other end. Nothing is reordered.
 *
 * It runs under SCHED_FIFO, so that it is late only by what the kernel takes to wake it. What it did stands
 * in the memory behind STATS_FD at any time: struct stats, counted since the start.
 *
 * Writes "ready" on standard output. Exit status 3, with a sentence, where the machine lacks something.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ull
#define MILLISECOND 1000000ull
#define BLOCK_BYTES (1u << 16)
#define PRIORITY 10
#define LOOK_MS 100        /* how often the ring's own count of losses is read */
#define SEND_BUFFER (64 << 20)
#define UNIT_NS 64         /* of the histogram; 16 linear bins, then 16 an octave (emulator/asic/histogram.py) */
#define BINS 416

struct stats {
	uint64_t relayed, lost_full, lost_refused, lost_cut, clock_steps;
	uint64_t late[BINS];   /* packets by how long after they were due they were sent */
};

static void lacks(const char *what)
{
	fprintf(stderr, "The relay of --delay cannot %s: %s.\n", what, strerror(errno));
	exit(3);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static unsigned bin_of(uint64_t ns)
{
	uint64_t x = ns / UNIT_NS;

	if (x < 16)
		return x;
	unsigned octave = 63 - __builtin_clzll(x) - 3;
	unsigned bin = octave * 16 + ((x >> (octave - 1)) & 15);

	return bin < BINS ? bin : BINS - 1;
}

static uint8_t *open_ring(int rx, unsigned slots, unsigned slot_bytes)
{
	unsigned per_block = BLOCK_BYTES / slot_bytes;
	struct tpacket_req ring = {.tp_block_size = BLOCK_BYTES, .tp_block_nr = slots / per_block,
				   .tp_frame_size = slot_bytes, .tp_frame_nr = slots};
	int version = TPACKET_V2, one = 1;
	struct sockaddr_ll any = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};

	if (setsockopt(rx, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(rx, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)))
		lacks("choose how packets are received");
	if (setsockopt(rx, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)))
		lacks("get memory for the packets under way");
	uint8_t *memory = mmap(NULL, (size_t)BLOCK_BYTES * ring.tp_block_nr, PROT_READ | PROT_WRITE, MAP_SHARED, rx, 0);

	if (memory == MAP_FAILED)
		lacks("map the packets under way");
	if (bind(rx, (struct sockaddr *)&any, sizeof(any)))
		lacks("receive packets");
	return memory;
}

static int open_sender(void)
{
	int tx = socket(AF_PACKET, SOCK_RAW, 0), one = 1, size = SEND_BUFFER;

	if (tx < 0 || setsockopt(tx, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) ||
	    setsockopt(tx, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		lacks("send packets");
	return tx;
}

/* The ring counts what it had no room for, and forgets it when asked. */
static void count_losses(int rx, struct stats *stats)
{
	struct tpacket_stats lost = {};
	socklen_t size = sizeof(lost);

	if (!getsockopt(rx, SOL_PACKET, PACKET_STATISTICS, &lost, &size))
		stats->lost_full += lost.tp_drops;
}

/* Arrivals bear the time of CLOCK_REALTIME, which somebody may set; a step is seen against the other clock. */
static void watch_clock(struct stats *stats)
{
	static int64_t before;
	int64_t offset = now_ns(CLOCK_REALTIME) - now_ns(CLOCK_MONOTONIC);

	if (before && llabs(offset - before) > (int64_t)MILLISECOND)
		stats->clock_steps++;
	before = offset;
}

static void send_on(int tx, struct tpacket2_hdr *packet, struct stats *stats)
{
	struct sockaddr_ll *from = (void *)((uint8_t *)packet + TPACKET_ALIGN(sizeof(*packet)));
	struct sockaddr_ll out = {.sll_family = AF_PACKET, .sll_ifindex = from->sll_ifindex ^ 1};
	uint8_t *data = (uint8_t *)packet + packet->tp_mac;

	if (packet->tp_snaplen < packet->tp_len)
		stats->lost_cut++;
	else if (sendto(tx, data, packet->tp_snaplen, MSG_DONTWAIT, (struct sockaddr *)&out, sizeof(out)) < 0)
		stats->lost_refused++;
	else
		stats->relayed++;
}

int main(int argc, char **argv)
{
	if (argc != 6) {
		fprintf(stderr, "usage: relay STATS_FD DELAY_NS SLOTS SLOT_BYTES PARENT\n");
		return 2;
	}
	uint64_t delay = strtoull(argv[2], NULL, 10);
	unsigned slots = atoi(argv[3]), slot_bytes = atoi(argv[4]), per_block = BLOCK_BYTES / slot_bytes, head = 0;
	struct stats *stats = mmap(NULL, sizeof(*stats), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[1]), 0);
	struct sched_param priority = {.sched_priority = PRIORITY};

	if (stats == MAP_FAILED)
		lacks("map its statistics");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != atoi(argv[5]))
		return 1;  /* the parent ended before we could ask to follow it */
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		lacks("run in real time (SCHED_FIFO; a container needs the capability SYS_NICE)");
	int rx = socket(AF_PACKET, SOCK_RAW, 0);

	if (rx < 0)
		lacks("open a packet socket");
	uint8_t *memory = open_ring(rx, slots, slot_bytes);
	int tx = open_sender();
	uint64_t looked = 0;

	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	for (;;) {
		struct tpacket2_hdr *packet = (void *)(memory + (size_t)(head / per_block) * BLOCK_BYTES +
						       (size_t)(head % per_block) * slot_bytes);
		uint64_t now = now_ns(CLOCK_REALTIME);

		if (now - looked > LOOK_MS * MILLISECOND) {
			count_losses(rx, stats);
			watch_clock(stats);
			looked = now;
		}
		if (!(__atomic_load_n(&packet->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) {
			struct pollfd arrival = {.fd = rx, .events = POLLIN};

			poll(&arrival, 1, LOOK_MS);
			continue;
		}
		uint64_t due = packet->tp_sec * SECOND + packet->tp_nsec + delay;

		if (due > now + delay)
			due = now;  /* the clock was set back: no packet waits longer than its delay */
		if (due > now) {
			struct timespec until = {.tv_sec = due / SECOND, .tv_nsec = due % SECOND};

			clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
			continue;
		}
		stats->late[bin_of(now - due)]++;
		send_on(tx, packet, stats);
		__atomic_store_n(&packet->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		head = (head + 1) % slots;
	}
}
