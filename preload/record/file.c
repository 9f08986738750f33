/* The files that hold streams: growing, reserving, mapping. See file.h. */
#include "preload/record/file.h"

#include "preload/raw.h"
#include "preload/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>

#define RESERVE_FROM (8ul << 20)
#define RESERVE_STEP (4ul << 20)
#define HUGE (2ul << 20)

int rec_memory_file = -1;
uint64_t rec_memory_most;
bool rec_memory_short;
static uint64_t total; /* bytes allocated on disk by this process */

uint64_t rec_total(void)
{
	return __atomic_load_n(&total, __ATOMIC_RELAXED);
}

void rec_forget_total(void)
{
	total = 0;
}

static const char *stream_name(const struct rec_stream *s, struct raw_text *name)
{
	static const char *const plain[] = {
		[TRC_STREAM_PROCESS] = "process", [TRC_STREAM_MEMORY] = "memory", [TRC_STREAM_FINAL] = "final",
	};

	if (s->kind == TRC_STREAM_FRAGS)
		return "frags";
	if (rec_epoch) {
		text_str(name, "e");
		text_num(name, rec_epoch);
		text_str(name, ".");
	}
	if (s->kind < sizeof plain / sizeof *plain && plain[s->kind]) {
		text_str(name, plain[s->kind]);
		if (s->kind == TRC_STREAM_MEMORY && rec_epoch > 1)
			text_str(name, "-new"); /* see rec_ring_complete() */
		return name->s;
	}
	text_str(name, "t");
	text_num(name, s->thread);
	text_str(name, s->kind == TRC_STREAM_PATH ? ".path" : ".rec");
	return name->s;
}

const char *file_refused(long err)
{
	switch (-err) {
	case ENOSPC: return "no space left for the trace; recording stopped";
	case EDQUOT: return "disk quota exceeded; recording stopped";
	case EFBIG: return "file size limit (RLIMIT_FSIZE) reached; recording stopped";
	case EMFILE:
	case ENFILE: return "no file descriptor left for the trace; recording stopped";
	case ENOENT: return "the trace directory is gone; recording stopped";
	case EACCES:
	case EPERM: return "the trace may no longer be written (another user?); recording stopped";
	case ENOMEM: return "no memory left to map the trace; recording stopped";
	case E2BIG: return "max_size reached; recording stopped";
	default: return "cannot write the trace; recording stopped";
	}
}

/* In one call as far as possible, so that the kernel can use large pages for it. */
static long write_zeros(int fd, uint64_t offset, size_t len)
{
	static const char zeros[64 << 10];
	struct iovec iov[64];
	int n = 0;

	for (; len && n < 64; n++) {
		size_t part = len < sizeof zeros ? len : sizeof zeros;

		iov[n].iov_base = (void *)zeros;
		iov[n].iov_len = part;
		len -= part;
	}
	return raw(SYS_pwritev, fd, iov, n, offset, offset >> 32);
}

/* Beyond the limit the kernel would send SIGXFSZ to the program. */
static bool beyond_limit(uint64_t size)
{
	struct rlimit limit;

	return !raw(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) &&
	       limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

long file_may_grow(uint64_t size)
{
	return beyond_limit(size) ? -EFBIG : 0;
}

long file_write(int fd, uint64_t offset, const void *from, size_t n)
{
	long done = raw(SYS_pwrite64, fd, from, n, offset);

	return done < 0 ? done : (size_t)done == n ? 0 : -ENOSPC;
}

/*
 * Reserves disk space by writing zeros. Most traces are removed when the program ends well, and
 * a file whose blocks were never chosen goes in 25 us; one that fallocate() gave blocks takes 0.2-8 ms
 * (ext4, mounted with discard). The reservation holds all the same.
 */
long file_allocate(int fd, uint64_t offset, size_t len)
{
	if (beyond_limit(offset + len))
		return -EFBIG;
	for (size_t n = 0; n < len;) {
		long done = write_zeros(fd, offset + n, len - n);

		if (done == -EINTR)
			continue;
		if (done <= 0) {
			raw(SYS_ftruncate, fd, offset);
			return done ? done : -ENOSPC;
		}
		n += (size_t)done;
	}
	return 0;
}

/*
 * The mapping, with an inaccessible page behind it. Large ones lie in memory as
 * they do in the file, modulo the size of a huge page.
 */
void *file_map(int fd, uint64_t offset, size_t len)
{
	size_t slack = len >= HUGE ? HUGE : 0;
	char *area = raw_map(len + slack + RAW_PAGE, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t skip = slack ? (offset - (uint64_t)area) % HUGE : 0;

	if (!area)
		return NULL;
	long p = raw(SYS_mmap, area + skip, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		     offset);
	if (raw_failed(p)) {
		raw_free(area, len + slack + RAW_PAGE);
		return NULL;
	}
	if (skip)
		raw_free(area, skip);
	if (slack - skip)
		raw_free(area + skip + len + RAW_PAGE, slack - skip);
	return area + skip;
}

void file_give_back(size_t len)
{
	__atomic_sub_fetch(&total, len, __ATOMIC_RELAXED);
}

/* The stream's file, if it may grow by len bytes, which then count; negative errno. */
int file_open_to_grow(const struct rec_stream *s, size_t len)
{
	TEXT(name, 48);
	/* The process stream always may: the reason for a failure must find room. */
	bool limited = s->kind != TRC_STREAM_PROCESS;
	uint64_t sum = __atomic_add_fetch(&total, len, __ATOMIC_RELAXED);
	int fd = -E2BIG;

	if (rec_memory_file >= 0 && sum <= rec_memory_most)
		fd = (int)raw(SYS_fcntl, rec_memory_file, F_DUPFD_CLOEXEC, 0);
	else if (rec_memory_file >= 0)
		rec_memory_short = true;
	else if (shim.state == SHIM_ENDED)
		fd = -ENOENT;
	else if (!limited || sum <= rec_ring_limit() || rec_ring_make_room(rec_ring_limit()))
		fd = rec_dir_open(stream_name(s, &name), O_RDWR | O_CREAT);
	if (fd < 0)
		file_give_back(len);
	return fd;
}

/* Closes the file; err is how growing by len bytes went. */
void file_grown(struct rec_stream *s, int fd, size_t len, long err)
{
	raw(SYS_close, fd);
	if (err)
		file_give_back(len);
	else
		s->file_end += len;
}

/*
 * Blocks of large files are allocated many at a time, before they are written: 0.19
 * instead of 0.29 ns per byte. Errors do not matter here: writing will meet them.
 */
void file_reserve(struct rec_stream *s, int fd, size_t len)
{
	if (s->file_end < RESERVE_FROM || s->file_end + len <= s->reserved)
		return;
	raw(SYS_fallocate, fd, FALLOC_FL_KEEP_SIZE, s->file_end, RESERVE_STEP);
	s->reserved = s->file_end + RESERVE_STEP;
}

static long append(int fd, uint64_t offset, const struct trc_chunk *head, const void *payload, size_t used)
{
	struct iovec iov[2] = { { (void *)head, sizeof *head }, { (void *)payload, used } };
	size_t len = sizeof *head + used;

	if (beyond_limit(offset + len))
		return -EFBIG;
	long n = raw(SYS_pwritev, fd, iov, 2, offset, offset >> 32);

	if (n >= 0 && n != (long)len) {
		raw(SYS_ftruncate, fd, offset);
		n = -ENOSPC;
	}
	return n < 0 ? n : 0;
}

long file_append(int fd, uint64_t offset, const struct trc_chunk *head, const void *payload)
{
	return append(fd, offset, head, payload, head->length);
}

long file_append_whole(int fd, uint64_t offset, const struct trc_chunk *head, const void *payload)
{
	struct trc_chunk open = *head;

	open.length = TRC_CHUNK_OPEN;
	long err = append(fd, offset, &open, payload, head->length);

	if (err)
		return err;
	err = file_write(fd, offset, head, sizeof *head);
	if (err)
		raw(SYS_ftruncate, fd, offset);
	return err;
}

/* Ends the file where the stream does. */
void file_truncate(struct rec_stream *s, uint64_t end)
{
	TEXT(name, 48);
	int fd = rec_dir_open(stream_name(s, &name), O_RDWR);

	if (fd < 0)
		return;
	if (!raw(SYS_ftruncate, fd, end))
		file_give_back(s->file_end - end);
	raw(SYS_close, fd);
}
