/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls that count the program's memory, ours included: limits on address space and data, and locking all of it. The
 * kernel's limits are raised by what is ours, and the program is shown its own; only the program's memory is locked. And calls that
 * count what its children have used, among them the copies that write checkpoints.
 */
#include "preload/maps.h"
#include "preload/translate/epoch.h"
#include "preload/translate/syscall.h"

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/times.h>

#define GROWTH (32ull << 20) /* bytes that we may still come to need */

static struct seen {
	unsigned resource;
	bool set;
	struct rlimit limit; /* as the program set it */
} seen[] = { { .resource = RLIMIT_AS }, { .resource = RLIMIT_DATA } };
static uint64_t ours; /* what is added, the same each time: a hard limit cannot be raised again */

static struct seen *seen_of(unsigned resource)
{
	for (unsigned i = 0; i < sizeof seen / sizeof seen[0]; i++)
		if (seen[i].resource == resource)
			return &seen[i];
	return NULL;
}

static uint64_t raised(uint64_t limit, uint64_t most)
{
	uint64_t sum = limit > RLIM_INFINITY - ours ? RLIM_INFINITY : limit + ours;

	return sum < most ? sum : most;
}

static long set(struct seen *s, const struct rlimit *new)
{
	struct rlimit now, real;

	if (new->rlim_cur > new->rlim_max)
		return -EINVAL;
	if (s->set && new->rlim_max > s->limit.rlim_max) /* the kernel says whether this may be */
		return raw(SYS_prlimit64, 0, s->resource, new, NULL) ? -EPERM : (s->limit = *new, 0);
	long err = raw(SYS_prlimit64, 0, s->resource, NULL, &now);

	if (err)
		return err;
	if (!ours)
		ours = tr_owned_bytes() + GROWTH;
	real.rlim_max = new->rlim_max > now.rlim_max ? new->rlim_max : raised(new->rlim_max, now.rlim_max);
	real.rlim_cur = raised(new->rlim_cur, real.rlim_max);
	err = raw(SYS_prlimit64, 0, s->resource, &real, NULL);
	if (!err) {
		s->set = true;
		s->limit = *new;
	}
	return err;
}

/* False: the kernel's business alone. */
static bool limit_call(struct call *k, unsigned resource, uint64_t new_at, uint64_t old_at)
{
	struct seen *s = seen_of(resource);
	struct rlimit new, old;

	/* Who shares our memory has limits of its own. */
	if (!s || k->ctx->vfork_child || k->ctx->own_process || (!new_at && !s->set))
		return false;
	k->result = -EFAULT;
	if (new_at && !tr_copy(&new, (void *)new_at, sizeof new))
		return true;
	old = s->limit;
	if (!s->set)
		raw(SYS_prlimit64, 0, resource, NULL, &old);
	k->result = new_at ? set(s, &new) : 0;
	if (k->result || !old_at)
		return true;
	if (tr_copy((void *)old_at, &old, sizeof old))
		call_effect_add(k, old_at, sizeof old, TRC_EFFECT_WRITE);
	else
		k->result = -EFAULT;
	return true;
}

void tr_limits_show(bool show)
{
	for (unsigned i = 0; i < sizeof seen / sizeof seen[0]; i++) {
		struct rlimit real = seen[i].limit;

		if (!seen[i].set)
			continue;
		/* The hard limit could not be taken back, should the exec fail. */
		real.rlim_max = raised(real.rlim_max, RLIM_INFINITY);
		if (!show)
			real.rlim_cur = raised(real.rlim_cur, RLIM_INFINITY);
		raw(SYS_prlimit64, 0, seen[i].resource, &real, NULL);
	}
}

/* ---- locking ---- */

bool tr_locks_future;

struct locking {
	uint64_t sum; /* of the program's memory */
	bool lock;
	unsigned flags; /* of mlock2 */
};

static uint64_t hex(const char **p)
{
	uint64_t v = 0;

	for (; (**p >= '0' && **p <= '9') || (**p >= 'a' && **p <= 'f'); (*p)++)
		v = v << 4 | (uint64_t)(**p <= '9' ? **p - '0' : **p - 'a' + 10);
	return v;
}

static void one_mapping(char *line, void *arg)
{
	struct locking *l = arg;
	const char *p = line;
	uint64_t at = hex(&p), end = (p++, hex(&p));

	if (at >= 1ull << 47)
		return;
	while (at < end) {
		uint64_t own_end = 0, own = tr_owned_next(at, &own_end), stop = tr_min(own, end);

		if (stop > at) {
			l->sum += stop - at;
			if (l->lock)
				raw(SYS_mlock2, at, stop - at, l->flags);
		}
		at = own < end ? own_end : end;
	}
}

static bool may_lock_any(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	return !raw(SYS_capget, &head, data) && data[0].effective >> CAP_IPC_LOCK & 1;
}

static bool lock_all(struct call *k)
{
	static char buf[MAPS_BUFFER] RAW_LARGE;
	unsigned flags = (unsigned)k->args[0];
	struct locking l = { .flags = flags & MCL_ONFAULT ? 1 /* MLOCK_ONFAULT */ : 0 };
	struct rlimit limit;

	if (!flags || flags & ~(unsigned)(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) || flags == MCL_ONFAULT)
		return false;
	tr_lock();
	/* Is it allowed at all? That the kernel says for what does no harm: what is mapped later, or our own page. */
	tr_locks_future = flags & MCL_FUTURE;
	k->result = flags & MCL_FUTURE ? raw(SYS_mlockall, flags & ~(unsigned)MCL_CURRENT) :
					 raw(SYS_mlock, buf, 1);
	if (!(flags & MCL_FUTURE) && !k->result)
		raw(SYS_munlock, buf, 1);
	if (!k->result && flags & MCL_CURRENT) {
		maps_read(buf, one_mapping, &l);
		raw(SYS_prlimit64, 0, RLIMIT_MEMLOCK, NULL, &limit);
		if (l.sum > limit.rlim_cur && !may_lock_any())
			k->result = -ENOMEM;
		l.lock = !k->result;
		if (l.lock)
			maps_read(buf, one_mapping, &l);
	}
	tr_unlock();
	return true;
}

bool call_limits(struct call *k)
{
	switch (k->nr) {
	case SYS_setrlimit: return limit_call(k, (unsigned)k->args[0], k->args[1], 0);
	case SYS_getrlimit: return limit_call(k, (unsigned)k->args[0], 0, k->args[1]);
	case SYS_prlimit64:
		if (k->args[0] && (uint32_t)k->args[0] != (uint32_t)raw(SYS_getpid))
			return false;
		return limit_call(k, (unsigned)k->args[1], k->args[2], k->args[3]);
	case SYS_mlockall: return lock_all(k);
	case SYS_munlockall: tr_locks_future = false; return false;
	}
	return false;
}

/* ---- what children have used ---- */

#define TICK_US 10000u /* of times(): USER_HZ is 100 */

/* Each copy's time was cut to microseconds, the sum was not. */
static void take_off(struct timeval *t, uint64_t us, uint64_t cut)
{
	uint64_t all = (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec, left = all > us + cut ? all - us : 0;

	t->tv_sec = (long)(left / 1000000);
	t->tv_usec = (long)(left % 1000000);
}

static void hide_in_usage(struct rusage *r, const struct tr_copies *c)
{
	take_off(&r->ru_utime, c->utime, c->n);
	take_off(&r->ru_stime, c->stime, c->n);
	r->ru_minflt -= c->minflt;
	r->ru_majflt -= c->majflt;
	r->ru_inblock -= c->inblock;
	r->ru_oublock -= c->oublock;
	r->ru_nvcsw -= c->nvcsw;
	r->ru_nivcsw -= c->nivcsw;
	if (!r->ru_minflt) /* it has had no child */
		r->ru_maxrss = 0;
}

void call_hide_copies(struct call *k)
{
	const struct tr_copies *c = tr_epoch_copies();
	struct rusage usage;
	struct tms times;

	if (!c->n || raw_failed(k->result))
		return;
	if (k->nr == SYS_times && k->args[0] && tr_copy(&times, (void *)k->args[0], sizeof times)) {
		times.tms_cutime -= (clock_t)(c->utime / TICK_US);
		times.tms_cstime -= (clock_t)(c->stime / TICK_US);
		tr_copy((void *)k->args[0], &times, sizeof times);
	}
	if (k->nr == SYS_getrusage && (int)k->args[0] == RUSAGE_CHILDREN &&
	    tr_copy(&usage, (void *)k->args[1], sizeof usage)) {
		hide_in_usage(&usage, c);
		tr_copy((void *)k->args[1], &usage, sizeof usage);
	}
}
