/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mappings of every kind, changed, moved, cut and touched; a touch that faults is an answer like
 * others. */
#include "random.h"

#include <sys/shm.h>

#define MAPS 10
#define MOST 8 /* pages */

static struct map {
	unsigned char *at;
	unsigned pages;
	bool cut; /* it may be several for the kernel, or be one with what was next to it */
} maps[MAPS];
static unsigned char
    *arena; /* where mappings are put, so that they meet each other and nothing else */
static int backing[4] = {-1, -1, -1, -1}; /* mapped shared: 0, 1; mapped private: 2, 3 */

static void begin(void)
{
	arena = mmap(NULL, 64 * MOST * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		     -1, 0);
	for (int i = 0; i < 4; i++) {
		char name[2] = {(char)('m' + 3 * (i & 1)), 0};

		backing[i] =
		    i < 2 ? memfd_create("backing", 0) : open(name, O_RDWR | O_CREAT, 0600);
		fill_random(buffer, PAGE);
		for (int k = 0; k < 5; k++)
			if (write(backing[i], buffer, PAGE - 100 * (unsigned)k) < 0)
				_exit(3);
	}
}

/* A place of our own: slot i of the arena, which nothing else is put into. */
static void *place(size_t i)
{
	return arena + (i * 6 + rnd(3)) * MOST * PAGE;
}

static void map_new(size_t i)
{
	static const int prots[] = {PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ,
				    PROT_NONE};
	struct map *m = &maps[i];
	unsigned pages = 1 + rnd(MOST), kind = rnd(5);
	int fd = kind < 2 ? -1 : backing[kind < 4 ? kind - 2 : 2 + rnd(2)];
	bool shared = kind > 0 && kind < 4;
	int flags = (shared ? MAP_SHARED : MAP_PRIVATE) | (fd < 0 ? MAP_ANONYMOUS : 0) | MAP_FIXED;

	if (m->at)
		munmap(m->at, m->pages * PAGE);
	m->at = mmap(place(i), pages * PAGE, prots[rnd(4)], flags, fd,
		     fd < 0 ? 0 : (off_t)rnd(3) * PAGE);
	if (m->at == MAP_FAILED)
		m->at = NULL;
	m->pages = pages;
	m->cut = false;
	say("map %u of %u pages %d", kind, pages, m->at != NULL);
}

static void move(struct map *m)
{
	unsigned to = 1 + rnd(MOST);
	size_t i = (size_t)(m - maps);
	void *new;

	switch (rnd(3)) {
	case 0: /* where it is; what is next to it may be in the way, and is not when it lies in its
		   own slot */
		if (to > m->pages)
			munmap(m->at + m->pages * PAGE, (to - m->pages) * PAGE);
		new = (void *)TRY(mremap(m->at, m->pages * PAGE, to * PAGE, 0));
		break;
	case 1:
		new = (void *)TRY(mremap(m->at, m->pages * PAGE, to * PAGE,
					 MREMAP_MAYMOVE | MREMAP_FIXED,
					 arena + (i * 6 + 3 + rnd(2)) * MOST * PAGE));
		break;
	default:
		new = (void *)TRY(mremap(m->at, m->pages * PAGE, m->pages * PAGE,
					 MREMAP_MAYMOVE | 4 /* DONTUNMAP */, NULL));
		if (new != MAP_FAILED) {
			guarded("left behind", m->at, false);
			munmap(m->at, m->pages * PAGE);
		}
		to = m->pages;
	}
	if (new == MAP_FAILED)
		return;
	m->at = new;
	m->pages = to;
	m->cut = true;
}

static void system_v(void)
{
	int id = shmget(IPC_PRIVATE, 2 * PAGE, IPC_CREAT | 0600);
	unsigned char *a = shmat(id, NULL, 0), *b = shmat(id, NULL, chance(50) ? SHM_RDONLY : 0);
	struct shmid_ds ds;

	fill_random(a, 3000);
	if (b[rnd(3000)] & 1)
		say("odd");
	DO(shmctl(id, IPC_STAT, &ds));
	say("%u %ld", checksum(b, 2 * PAGE), (long)ds.shm_nattch);
	DO(shmdt(a));
	shmctl(id, IPC_RMID, NULL);
	say("%u", checksum(b, PAGE));
	DO(shmdt(b));
}

/* What is written into the files that are mapped. */
static void write_backing(void)
{
	int fd = backing[rnd(4)];

	fill_random(buffer, 64);
	switch (rnd(5)) {
	case 0:
		DO(pwrite(fd, buffer, rnd(6000), rnd(9000)));
		break;
	case 1:
		lseek(fd, rnd(9000), SEEK_SET);
		DO(write(fd, buffer, rnd(3000)));
		break;
	case 2:
		DO(ftruncate(fd, (1 + rnd(20)) * 1000));
		break;
	case 3:
		DO(fallocate(fd, 3 /* punch a hole */, rnd(9000), 1 + rnd(5000)));
		break;
	case 4:
		say("read %ld %u", (long)pread(fd, buffer, 3000, rnd(9000)),
		    checksum(buffer, 3000));
		break;
	}
}

void op_memory(void)
{
	size_t i = rnd(MAPS);
	struct map *m = &maps[i];
	static const int advices[] = {MADV_DONTNEED, MADV_DONTNEED,	     MADV_WILLNEED,
				      MADV_NORMAL,   22 /* POPULATE_READ */, MADV_REMOVE};
	unsigned char present[MOST];
	unsigned char *heap;

	if (!arena)
		begin();
	if (!m->at || chance(25)) {
		map_new(i);
		return;
	}
	unsigned first = rnd(m->pages), n = 1 + rnd(m->pages - first);

	switch (rnd(m->cut ? 9 : 11)) {
	case 0:
		m->cut = true;
		DO(mprotect(m->at + first * PAGE, n * PAGE, (int)rnd(4)));
		break;
	case 1:
		m->cut = true;
		DO(munmap(m->at + first * PAGE, n * PAGE));
		break;
	case 9:
	case 10:
		move(m);
		break;
	case 4:
	case 5:
		m->cut = true;
		DO(madvise(m->at + first * PAGE, n * PAGE, advices[rnd(6)]));
		break;
	case 6:
		DO(mincore(m->at, m->pages * PAGE, present));
		break;
	case 7:
		DO(msync(m->at, m->pages * PAGE, MS_SYNC));
		break;
	case 8:
		heap = sbrk(0);
		TRY(sbrk(3 * PAGE));
		fill_random(heap, 100);
		say("%u", checksum(heap, 3 * PAGE));
		TRY(sbrk(-3 * (long)PAGE));
		break;
	case 2:
		chance(50) ? write_backing() : system_v();
		break;
	case 3:
		m->cut = true;
		DO(mlock(m->at, PAGE));
		DO(munlock(m->at, PAGE));
		break;
	}
}

void op_access(void)
{
	struct map *m = &maps[rnd(MAPS)];
	unsigned char *at;
	long n;

	if (!m->at) {
		op_memory();
		return;
	}
	at = m->at + rnd(m->pages * PAGE - 64);
	switch (rnd(8)) {
	case 0:
	case 1:
	case 2:
		guarded("load", at, false);
		break;
	case 3:
	case 4:
		guarded("store", at, true);
		break;
	case 5:
		write_backing();
		break;
	/* The kernel touches it for us: from a pipe's other end or a file. */
	case 6:
		n = pread(backing[0], at, 64, rnd(3000));
		say("kernel writes %ld %s", n, n < 0 ? strerrorname_np(errno) : "");
		if (n > 0)
			say("%u", checksum(at, (size_t)n));
		break;
	case 7:
		n = pwrite(backing[1], at, 64, rnd(3000));
		say("kernel reads %ld %s", n, n < 0 ? strerrorname_np(errno) : "");
		break;
	}
}
