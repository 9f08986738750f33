/* A trace into the machine: memory, modules, threads and their records. */
#include "analyzer/follow/follow.h"
#include "common/door.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LET_GO_RECORDS (1u << 18) /* read between two looks at what the kernel may have back */
#define STACK_LIMIT (8ull << 20) /* how far the kernel lets the main stack grow */

/* A module's file, mapped. */
struct run_file {
	uint8_t build_id[32];
	uint8_t build_id_len;
	char *path;
	const uint8_t *data;
	size_t size;
};

/* ---- modules and their files ---- */

static void file_open(struct run_file *f, const char *path)
{
	int fd = door_open(DOOR_ELF, path);
	struct stat st;
	void *p;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p != MAP_FAILED) {
			f->data = p;
			f->size = (size_t)st.st_size;
		}
	}
	close(fd);
}

static struct run_file *file_find(struct mach_run *r, const struct trc_module *m)
{
	for (size_t i = 0; i < r->opened.n; i++) {
		struct run_file *f = r->opened.v[i];

		if (f->build_id_len == m->build_id_len &&
		    !memcmp(f->build_id, m->build_id, f->build_id_len) &&
		    strlen(f->path) == m->path_len && !memcmp(f->path, m->path, m->path_len))
			return f;
	}
	return NULL;
}

static struct run_file *file_add(struct mach_run *r, const struct trc_module *m,
				 const char *use)
{
	struct run_file *f = xcalloc(1, sizeof *f);

	f->build_id_len = m->build_id_len <= sizeof f->build_id ? m->build_id_len : 0;
	memcpy(f->build_id, m->build_id, f->build_id_len);
	f->path = xcalloc(1, m->path_len + 1u);
	memcpy(f->path, m->path, m->path_len);
	if (use)
		file_open(f, use);
	vec_push(&r->opened, f);
	return f;
}

/* Tells the image room of a module; its file is then found by build-id. */
static struct run_file *module_add(struct mach_run *r, size_t first)
{
	const struct trc_module *m = r->t->modules.v[first];
	struct img_mapping maps[64];
	struct img_module *mod = NULL;
	struct run_file *f;
	size_t n = 0;
	char *path = xcalloc(1, m->path_len + 1u);

	memcpy(path, m->path, m->path_len);
	for (size_t i = first; i < r->t->modules.n && n < 64; i++) {
		const struct trc_module *o = r->t->modules.v[i];

		if (o->path_len == m->path_len && !memcmp(o->path, m->path, m->path_len) &&
		    o->tsc == m->tsc)
			maps[n++] = (struct img_mapping){ o->start, o->end, o->offset, o->prot };
	}
	struct img_module_desc desc = {
		.path = path,
		.build_id = m->build_id_len ? m->build_id : NULL,
		.build_id_len = m->build_id_len,
		.maps = maps,
		.n_maps = n,
		.packed_file = trc_packed_file(r->t, m->build_id, m->build_id_len),
	};
	err_t e = img_add_module(r->images, &desc, &mod);

	if (e) {
		run_note(r, "%s", e->msg);
		err_free(e);
		f = file_add(r, m, NULL); /* another build: its bytes would be wrong */
	} else {
		f = file_add(r, m, mod ? img_module_file(mod) : NULL);
		if (!f->data)
			run_note(r, "%s: the module's file was not found", path);
	}
	free(path);
	return f;
}

void run_file_map(struct mach_run *r, uint64_t start, uint64_t end, uint64_t offset,
		  const struct trc_module *module)
{
	struct run_file *f = file_find(r, module);

	if (!f)
		for (size_t i = 0; i < r->t->modules.n; i++)
			if (r->t->modules.v[i] == module)
				f = module_add(r, i);
	vec_push(&r->files, (struct file_map){ start, end, offset, f });
}

static bool fill(void *arg, uint64_t page, uint8_t *bytes)
{
	struct mach_run *r = arg;

	for (size_t i = r->files.n; i-- > 0;) { /* the youngest mapping wins */
		const struct file_map *f = &r->files.v[i];
		uint64_t at;

		if (page < f->start || page >= f->end)
			continue;
		if (!f->file || !f->file->data) {
			r->missing = f->file ? f->file->path : "a module";
			return false;
		}
		at = f->offset + (page - f->start);
		memset(bytes, 0, MEM_PAGE);
		if (at < f->file->size)
			memcpy(bytes, f->file->data + at,
			       f->file->size - at < MEM_PAGE ? f->file->size - at : MEM_PAGE);
		return true;
	}
	return false;
}

void run_files_free(struct mach_run *r)
{
	for (size_t i = 0; i < r->opened.n; i++) {
		struct run_file *f = r->opened.v[i];

		if (f->data)
			munmap((void *)f->data, f->size);
		free(f->path);
		free(f);
	}
	vec_free(&r->opened);
	vec_free(&r->files);
}

/* ---- memory ---- */

static const struct trc_module *module_at(const struct mach_run *r, uint64_t start)
{
	for (size_t i = 0; i < r->t->modules.n; i++) {
		const struct trc_module *m = r->t->modules.v[i];

		if (m->tsc == 0 && start >= m->start && start < m->end)
			return m;
	}
	return NULL;
}

/* The recorder's own shared memory. */
static bool is_ours(const struct trc_region *g)
{
	return memmem(g->path, g->path_len, "csched", 6) != NULL;
}

static bool map_object(struct mach_run *r, const struct trc_region *g)
{
	struct trc_object o;

	if (!(g->rec.flags & TRC_REGION_OBJECT))
		return false;
	memcpy(&o, g->path + (g->path_len + 7ul) / 8 * 8, sizeof o);
	return run_map_object(r, g->start, g->end, g->prot, &o);
}

static void load_region(struct mach_run *r, const struct trc_region *g)
{
	unsigned flags = g->rec.flags;
	const struct trc_module *m =
		g->path_len && g->path[0] == '/' ? module_at(r, g->start) : NULL;

	if (g->start >= g->end)
		return;
	if (!map_object(r, g))
		mem_map(r->m->mem, g->start, g->end, g->prot, m != NULL);
	if (m)
		run_file_map(r, g->start, g->end, m->offset + (g->start - m->start), m);
	if (flags & TRC_REGION_BRK)
		r->brk = g->end;
	if ((flags & TRC_REGION_SHARED) && !is_ours(g))
		run_note_shared(r, g->start, g->end, true);
	if ((flags & TRC_REGION_SHARED) && (g->prot & MEM_W) && g->path_len && !is_ours(g))
		run_note(r, "memory shared with others at 0x%" PRIx64 " is taken to be private",
			 g->start);
}

/* Below the main stack as recorded, down to where the kernel would let it grow. */
static void grow_stack(struct mach_run *r, const struct trc_region *g)
{
	uint64_t low = g->end > STACK_LIMIT ? g->end - STACK_LIMIT : 0, at = g->start;

	while (at > low && at >= MEM_PAGE && !mem_find(r->m->mem, at - MEM_PAGE))
		at -= MEM_PAGE;
	if (at < g->start)
		mem_map(r->m->mem, at, g->start, g->prot, false);
}

static void load_page(void *arg, uint64_t address, const uint8_t *bytes)
{
	struct mach_run *r = arg;

	mem_poke(r->m->mem, address, bytes, TRC_PAGE);
}

static err_t load_memory(struct mach_run *r)
{
	struct trc_iter it;
	const struct trc_rec *rec;
	const struct trc_region *stack = NULL;

	if (!r->t->memory)
		return err_new(ERR_NOANSWER, "%s: no memory snapshot: recorded with mode=sync?",
			       r->t->path);
	r->m->mem->fill = fill;
	r->m->mem->fill_arg = r;
	trc_iter_init(&it, r->t->memory);
	for (;;) {
		TRY(trc_next(&it, &rec));
		if (!rec)
			break;
		if (rec->type == TRC_REGION) {
			load_region(r, (const struct trc_region *)rec);
			if (rec->flags & TRC_REGION_STACK)
				stack = (const struct trc_region *)rec;
		} else if (rec->type == TRC_PAGES) {
			const struct trc_pages *p = (const struct trc_pages *)rec;

			mem_poke(r->m->mem, p->address, p->bytes, p->length);
		}
	}
	TRY(trc_earlier_pages(r->t, load_page, r));
	if (stack) {
		grow_stack(r, stack);
		vec_push(&r->growing, stack->end);
	}
	return NULL;
}

/* ---- threads ---- */

static void add_seq(struct mach_run *r, uint32_t thread, uint64_t seq)
{
	vec_push(&r->seqs, (struct seq_event){ seq, thread });
}

static void load_record(struct mach_run *r, struct run_thread *t, const struct trc_rec *rec)
{
	switch (rec->type) {
	case TRC_START:
		if (!t->start)
			t->start = (const struct trc_start *)rec;
		return;
	case TRC_ENTER:
		add_seq(r, t->index, ((const struct trc_enter *)rec)->seq);
		break;
	case TRC_LEAVE:
		add_seq(r, t->index, ((const struct trc_leave *)rec)->seq);
		break;
	case TRC_SIGNAL:
		add_seq(r, t->index, ((const struct trc_signal *)rec)->seq);
		break;
	case TRC_THREAD_EXIT:
		add_seq(r, t->index, ((const struct trc_thread_exit *)rec)->seq);
		break;
	case TRC_STOP:
		add_seq(r, t->index, ((const struct trc_stop *)rec)->seq);
		break;
	default:
		break;
	}
	vec_push(&t->recs, rec);
}

static int by_seq(const void *a, const void *b)
{
	const struct seq_event *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* The failure is a signal that the program handled: what the thread did from there on is its handler's. */
static bool is_handled_failure(const struct mach_run *r, const struct run_thread *t, const struct trc_rec *rec)
{
	const struct trc_failure *f = r->t->failure;
	const struct trc_signal *s = (const void *)rec;

	return f && f->thread == t->index && rec->type == TRC_SIGNAL && rec->flags == (unsigned)f->signal &&
	       s->path_pos == f->path_pos && s->interrupted_pc == f->regs[TRC_RIP];
}

/* Damage ends a stream; what stands before it is followed. */
static void load_thread(struct mach_run *r, struct run_thread *t,
			const struct trc_thread_info *info)
{
	struct trc_iter it;
	const struct trc_rec *rec;

	t->index = info->index;
	path_cursor_init(&t->s.cursor, r->frags, info->path_stream, 0, 0);
	trc_iter_init(&it, info->rec_stream);
	it.keep = true;
	for (;;) {
		err_t e = trc_next(&it, &rec);

		if (e) {
			run_note(r, "%s", e->msg);
			err_free(e);
			break;
		}
		if (!rec)
			break;
		if (is_handled_failure(r, t, rec)) {
			t->s.cursor.end = r->t->failure->path_pos;
			break;
		}
		load_record(r, t, rec);
		if (t->recs.n % LET_GO_RECORDS == LET_GO_RECORDS - 1)
			trc_let_go(r->t);
	}
	/* It has grown by doubling, and grows no more. */
	if (t->recs.n)
		t->recs.v = xrealloc(t->recs.v, (t->recs.cap = t->recs.n) * sizeof *t->recs.v);
	trc_let_go(r->t);
}

/* Traces of older recorders do not say: they have no more than AVX. */
static void load_layout(struct mach_run *r)
{
	const char *text = trc_identity(r->t, "xsave");

	if (text && xstate_parse(&r->m->xlayout, text))
		return;
	if (text)
		run_note(r, "how the recording processor saves vector registers is not told in a way that "
			 "is understood: they are taken to be those of AVX");
	xstate_plain(&r->m->xlayout);
}

/* A thread's vector registers, as the recorder found them. */
static void load_xsave(struct mach_run *r, struct mach_cpu *cpu, const uint8_t *x, uint32_t len)
{
	uint8_t area[XSTATE_MAX];
	uint64_t present;

	if (len < XSTATE_BASIC)
		return;
	len = len < sizeof area ? len : sizeof area;
	memcpy(area, x, len);
	memcpy(&present, area + XSTATE_LEGACY, 8);
	xstate_load(&r->m->xlayout,
		    &(struct mach_regs_at){ (uint8_t *)&cpu->g + MACH_OFF(YMM0), &cpu->wide, cpu->fx },
		    area, len, present);
	if (xstate_is_wide(&cpu->wide))
		mach_go_wide(r->m);
}

void run_born(struct mach_run *r, struct run_thread *t)
{
	const struct trc_start *s = t->start;
	struct mach_cpu *cpu = &t->s.cpu;

	mach_cpu_init(cpu);
	memcpy(&cpu->g.guest_RAX, s->regs, 16 * 8);
	cpu->g.guest_RIP = s->regs[TRC_RIP];
	mach_set_rflags(&cpu->g, s->regs[TRC_RFLAGS]);
	cpu->g.guest_FS_CONST = s->fs_base;
	cpu->g.guest_GS_CONST = s->gs_base;
	load_xsave(r, cpu, s->xsave, s->xsave_len);
	t->s.life = LIFE_RUNNING;
	t->s.action = ACT_RUN;
	t->s.clock_tsc = s->tsc;
	t->s.clock_rate = 2 << 8; /* until it is measured */
	path_goto(&t->s.cursor, s->regs[TRC_RIP]);
}

/* The last moment that is known of the thread that failed; others found out about deadlocks and hangs. */
static void load_failure(struct mach_run *r)
{
	const struct trc_failure *f = r->t->failure;

	if (!f || f->thread >= r->nthreads || f->rec.flags == TRC_FAIL_DEADLOCK || f->rec.flags == TRC_FAIL_HANG)
		return;
	r->threads[f->thread].failed_tsc = f->tsc;
	r->threads[f->thread].failed_pos = f->path_pos;
}

/* Of the order only who comes next is needed from here on. */
static void order_calls(struct mach_run *r)
{
	if (r->seqs.n)
		qsort(r->seqs.v, r->seqs.n, sizeof *r->seqs.v, by_seq);
	r->ncalls = r->seqs.n;
	r->calls = xmalloc((r->ncalls + 1) * sizeof *r->calls);
	for (size_t i = 0; i < r->ncalls; i++)
		r->calls[i] = r->seqs.v[i].thread;
	vec_free(&r->seqs);
}

err_t run_load(struct mach_run *r)
{
	TRY(path_frags_load(r->t, &r->frags));
	run_items_load(r);
	TRY(load_memory(r));
	r->nthreads = r->t->threads.n;
	r->threads = xcalloc(r->nthreads + 1, sizeof *r->threads);
	for (size_t i = 0; i < r->nthreads; i++)
		load_thread(r, &r->threads[i], &r->t->threads.v[i]);
	load_failure(r);
	TRY(run_epoch_load(r));
	order_calls(r);
	if (!r->began && (!r->nthreads || !r->threads[0].start))
		return err_new(ERR_NOANSWER,
			       "%s: the registers at the start of the run were not recorded",
			       r->t->path);
	r->m->event_pc = trc_identity_uint(r->t, "event_pc", 0);
	load_layout(r);
	r->current = NO_THREAD;
	if (r->began)
		run_epoch_begin(r);
	else
		run_born(r, &r->threads[0]);
	return NULL;
}
