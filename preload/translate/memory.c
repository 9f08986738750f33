/*
 * Calls that change mappings: what we own is defended, code that goes away or
 * becomes writable is dropped, contents of file mappings are recorded.
 */
#include "preload/translate/syscall.h"

#include <sys/mman.h>
#include <sys/stat.h>

#define FILE_EFFECT_MAX (256ull << 20)

static uint64_t page_up(uint64_t n)
{
	return (n + RAW_PAGE - 1) & ~(RAW_PAGE - 1);
}

/* Translated code in the range is no longer what it was. */
static void code_changes(uint64_t start, uint64_t end, int prot, bool made)
{
	tr_lock();
	bool used = tr_code_in(start, end) && tr_code_is_used(start, end);

	tr_code_update(start, end, prot, made);
	if (used)
		tr_drop_all();
	tr_unlock();
}

static void give_up(struct call *k, const char *why)
{
	tr_lock();
	tr_detach(k->ctx, why);
	tr_unlock();
}

static bool is_module(int fd)
{
	uint8_t head[18];

	return raw(SYS_pread64, fd, head, sizeof head, 0) == sizeof head && rec_is_module(head);
}

/* Whatever is behind the end of the file reads as zero, or faults. */
static void file_contents(struct call *k, uint64_t start, uint64_t len, int fd, uint64_t offset,
			  int prot)
{
	struct stat st;

	if (raw_failed(raw(SYS_fstat, fd, &st)))
		return;
	/* A piece of one that nobody has loaded (a debugger looks up names) is a file like others. */
	if (is_module(fd) && !(k->args[3] & MAP_SHARED) && rec_modules(raw_tsc(), start)) {
		call_effect_add(k, start, len, TRC_EFFECT_MODULE);
		return;
	}
	if ((st.st_mode & S_IFMT) != S_IFREG || (uint64_t)st.st_size <= offset ||
	    !(prot & TR_READABLE)) {
		if (!(prot & TR_READABLE))
			files_unread(start);
		if ((st.st_mode & S_IFMT) != S_IFREG)
			shim_note(false, "a device was mapped; its contents are not recorded");
		return;
	}
	uint64_t bytes = tr_min(len, (uint64_t)st.st_size - offset);

	if (bytes > FILE_EFFECT_MAX) {
		shim_note(true, "a mapped file is too large to be recorded");
		return;
	}
	call_effect_add(k, start, bytes, TRC_EFFECT_FILE);
}

/* Which object the mapping shows, should it be seen or changed elsewhere, too. */
static void note_object(struct call *k, uint64_t start, uint64_t len, int flags, int fd, uint64_t offset)
{
	bool shared = (flags & MAP_TYPE) != MAP_PRIVATE;
	uint64_t object = 0;
	struct stat st;

	if (flags & MAP_ANONYMOUS)
		object = shared ? files_new_object() : 0, offset = 0;
	else if (!raw_failed(raw(SYS_fstat, fd, &st)) && (st.st_mode & S_IFMT) == S_IFREG)
		object = files_object(&st);
	files_map(start, start + len, object, offset, object && !(flags & MAP_ANONYMOUS) ? (uint64_t)st.st_size : 0, shared);
	if (shared && object)
		call_effect_add(k, start, sizeof(struct trc_object), TRC_EFFECT_OBJECT);
}

static void map(struct call *k)
{
	int prot = (int)k->args[2], flags = (int)k->args[3], fd = (int)k->args[4];
	uint64_t len = page_up(k->args[1]);

	/* What is wrong in itself is the kernel's to say. */
	if ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && !(k->args[0] % RAW_PAGE) &&
	    tr_owns(k->args[0], k->args[0] + len)) {
		k->result = flags & MAP_FIXED_NOREPLACE ? -EEXIST : -ENOMEM;
		return;
	}
	k->result = raw(SYS_mmap, k->args[0], k->args[1], prot, flags, fd, k->args[5]);
	if (raw_failed(k->result))
		return;
	uint64_t start = (uint64_t)k->result;

	note_object(k, start, len, flags, fd, k->args[5]);
	if (!(flags & MAP_ANONYMOUS))
		file_contents(k, start, len, fd, k->args[5], prot);
	/* What is shared may be mapped once more, to be written there (Erlang's JIT). */
	bool made = (flags & MAP_ANONYMOUS) || (flags & MAP_TYPE) != MAP_PRIVATE;

	if ((flags & MAP_FIXED) || (prot & PROT_EXEC))
		code_changes(start, start + len, prot, made);
	if ((prot & PROT_EXEC) && ((prot & PROT_WRITE) || made))
		give_up(k, "the program makes code at run time (writable, anonymous or shared code)");
}

static void unmap(struct call *k)
{
	uint64_t start = k->args[0], end = start + page_up(k->args[1]);

	if (!(start % RAW_PAGE) && start < end && tr_owns(start, end)) {
		/* Around ours, piece by piece; what we keep is not the program's business. */
		k->result = 0;
		while (start < end) {
			uint64_t own_end = 0, own = tr_owned_next(start, &own_end);
			uint64_t stop = tr_min(own, end);

			if (stop > start)
				k->result = raw(SYS_munmap, start, stop - start);
			start = own < end ? own_end : end;
		}
	} else {
		k->result = raw(SYS_munmap, k->args[0], k->args[1]);
	}
	if (raw_failed(k->result))
		return;
	files_map(k->args[0], end, 0, 0, 0, false);
	code_changes(k->args[0], end, 0, false);
}

/* There is a hole in the range: what lies before it has changed all the same. */
static void protected_in_part(void)
{
	tr_lock();
	tr_code_refresh();
	tr_drop_all();
	tr_unlock();
}

static void protect(struct call *k)
{
	uint64_t start = k->args[0], end = start + page_up(k->args[1]);
	int prot = (int)k->args[2];

	if (!(start % RAW_PAGE) && tr_owns(start, end)) {
		k->result = -ENOMEM;
		return;
	}
	tr_lock();
	const struct tr_code *was = tr_code_in(start, end);
	bool made = !was || was->made;
	tr_unlock();
	k->result = raw(k->nr, start, k->args[1], prot, k->args[3]);
	if (k->result == -ENOMEM && was)
		protected_in_part();
	if ((!raw_failed(k->result) || k->result == -ENOMEM) && prot)
		files_readable(k, start, end);
	if (raw_failed(k->result))
		return;
	if (!was && !(prot & PROT_EXEC))
		return; /* data before and after */
	if (!was) {
		/* Becomes code only now: file-backed or made at run time? */
		tr_lock();
		tr_code_refresh();
		was = tr_code_at(start);
		made = !was || was->made;
		tr_unlock();
	}
	code_changes(start, end, prot, made);
	if ((prot & PROT_EXEC) && (made || (prot & PROT_WRITE)))
		give_up(k, "the program makes code at run time (mprotect)");
}

#define DONTUNMAP 4u /* MREMAP_DONTUNMAP */

/* No size of old: mapped once more. Of files there is more to see now, and again what they hold where nothing was moved from. */
static void object_moved(struct call *k, const struct files_place *p, uint64_t old, uint64_t new)
{
	uint64_t start = k->args[0], to = (uint64_t)k->result;

	if (old && !(k->args[3] & DONTUNMAP))
		files_map(start, start + old, 0, 0, 0, false);
	files_map(to, to + new, p->object, p->offset, p->size, p->shared);
	if (p->object && p->unread)
		files_unread(to);
	if (p->object && new > old)
		files_contents(k, to + old, to + new);
	if (p->object && k->args[3] & DONTUNMAP)
		files_contents(k, start, start + old);
}

static void remap(struct call *k)
{
	uint64_t start = k->args[0], old = page_up(k->args[1]), new = page_up(k->args[2]);

	if (tr_owns(start, start + old) ||
	    ((k->args[3] & MREMAP_FIXED) && tr_owns(k->args[4], k->args[4] + new))) {
		k->result = -EFAULT;
		return;
	}
	struct files_place place = { 0 };

	tr_lock();
	files_at(start, &place);
	tr_unlock();
	k->result = raw(SYS_mremap, start, k->args[1], k->args[2], k->args[3], k->args[4]);
	if (raw_failed(k->result))
		return;
	object_moved(k, &place, old, new);
	tr_lock();
	bool code = tr_code_in(start, start + old);
	tr_unlock();
	if (code)
		code_changes(start, start + old, 0, false);
}

/* A part of a shared mapping shows another part of its file. */
static void show_elsewhere(struct call *k)
{
	uint64_t start = k->args[0] & ~(RAW_PAGE - 1), len = k->args[1] & ~(RAW_PAGE - 1);
	struct files_place p = { 0 };

	k->result = -EINVAL;
	if (tr_owns(start, start + len))
		return;
	k->result = raw(SYS_remap_file_pages, k->args[0], k->args[1], k->args[2], k->args[3], k->args[4]);
	tr_lock();
	bool known = files_at(start, &p);
	tr_unlock();
	if (raw_failed(k->result) || !known)
		return;
	files_map(start, start + len, p.object, k->args[3] * RAW_PAGE, p.size, p.shared);
	call_effect_add(k, start, sizeof(struct trc_object), TRC_EFFECT_OBJECT);
	files_contents(k, start, start + len);
}

static void attach_shared(struct call *k)
{
	uint8_t ds[112]; /* struct shmid_ds: the size stands behind the permissions */
	uint64_t size = 0, start;

	k->result = raw(SYS_shmat, k->args[0], k->args[1], k->args[2]);
	if (raw_failed(k->result))
		return;
	start = (uint64_t)k->result;
	if (!raw_failed(raw(SYS_shmctl, k->args[0], 2, ds)))
		memcpy(&size, ds + 48, 8);
	files_map(start, start + page_up(size), 1ull << 63 | (uint32_t)k->args[0], 0, size, true);
	call_effect_add(k, start, sizeof(struct trc_object), TRC_EFFECT_OBJECT);
	call_effect_add(k, start, size, TRC_EFFECT_FILE);
}

static void detach_shared(struct call *k)
{
	struct files_place p;
	bool known;

	tr_lock();
	known = files_at(k->args[0], &p);
	tr_unlock();
	k->result = raw(SYS_shmdt, k->args[0]);
	if (!raw_failed(k->result) && known)
		files_map(k->args[0], p.end, 0, 0, 0, false);
}

bool call_memory(struct call *k)
{
	switch (k->nr) {
	case SYS_mmap: map(k); return true;
	case SYS_munmap: unmap(k); return true;
	case SYS_mprotect: case SYS_pkey_mprotect: protect(k); return true;
	case SYS_mremap: remap(k); return true;
	case SYS_remap_file_pages: show_elsewhere(k); return true;
	case SYS_shmat: attach_shared(k); return true;
	case SYS_shmdt: detach_shared(k); return true;
	}
	return false;
}
