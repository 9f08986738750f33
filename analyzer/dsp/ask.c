/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a hint asks for, in steps that can be tried on the running program. */
#include "analyzer/dsp/internal.h"

void dsp_ask(struct dsp_hint *h, enum dsp_step_kind kind, struct sched_ref first, struct sched_ref last, uint32_t which)
{
	if (h->nsteps == DSP_MAX_STEPS)
		return;
	h->step[h->nsteps++] = (struct dsp_step){ kind, first, last, which };
}

void dsp_ask_hold(struct dsp_hint *h, struct sched_ref first, struct sched_ref last)
{
	dsp_ask(h, DSP_STEP_HOLD, first, last, SYM_NONE);
}

void dsp_ask_lock(struct dsp_hint *h, uint32_t object)
{
	const struct sched_ref none = { SYM_NONE, SYM_NONE };

	for (unsigned i = 0; i < h->nsteps; i++)
		if (h->step[i].kind == DSP_STEP_LOCK && h->step[i].which == object)
			return;
	if (object != SYM_NONE)
		dsp_ask(h, DSP_STEP_LOCK, none, none, object);
}
