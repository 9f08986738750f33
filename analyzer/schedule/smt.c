#include "analyzer/schedule/smt_propagate.h"
#include "analyzer/schedule/limits.h"

#include "common/log.h"

#include <string.h>
#include <time.h>

double smt_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

bool smt_expired(struct smt_limit *l)
{
	if (!l || l->expired)
		return l && l->expired;
	l->expired = (l->most > 0 && l->spent > l->most) || (l->deadline > 0 && smt_now() > l->deadline) ||
		     (l->stop && l->stop(l->arg));
	return l->expired;
}

static void set_params(struct smt *s, unsigned timeout_ms, unsigned resources)
{
	Z3_params p = Z3_mk_params(s->z);

	Z3_params_inc_ref(s->z, p);
	Z3_params_set_uint(s->z, p, Z3_mk_string_symbol(s->z, "timeout"), timeout_ms);
	Z3_params_set_uint(s->z, p, Z3_mk_string_symbol(s->z, "rlimit"), resources);
	/* ^C belongs to the command, which tells us through the limit. */
	Z3_params_set_bool(s->z, p, Z3_mk_string_symbol(s->z, "ctrl_c"), false);
	Z3_solver_set_params(s->z, s->s, p);
	Z3_params_dec_ref(s->z, p);
}

static void ignore_error(Z3_context z, Z3_error_code e)
{
	(void)z;
	(void)e;
}

struct smt *smt_new(struct smt_limit *limit)
{
	struct smt *s = xcalloc(1, sizeof *s);
	Z3_config cfg = Z3_mk_config();

	Z3_set_param_value(cfg, "model", "true");
	s->z = Z3_mk_context(cfg);
	Z3_del_config(cfg);
	/* Errors surface as null results or unknown answers, both handled. */
	Z3_set_error_handler(s->z, ignore_error);
	s->s = Z3_mk_simple_solver(s->z);
	Z3_solver_inc_ref(s->z, s->s);
	s->g = order_acyclic_new();
	s->limit = limit;
	set_params(s, UINT32_MAX, 0);
	return s;
}

void smt_free(struct smt *s)
{
	if (!s)
		return;
	if (s->model)
		Z3_model_dec_ref(s->z, s->model);
	Z3_solver_dec_ref(s->z, s->s);
	Z3_del_context(s->z);
	smt_propagator_free(s->prop);
	order_acyclic_free(s->g);
	vec_free(&s->atoms);
	vec_free(&s->core);
	free(s->table);
	free(s);
}

void smt_assert(struct smt *s, Z3_ast a)
{
	s->clauses++;
	Z3_solver_assert(s->z, s->s, a);
}

Z3_ast smt_bool(struct smt *s)
{
	char name[32];

	snprintf(name, sizeof name, "b%zu", s->bools++);
	return Z3_mk_const(s->z, Z3_mk_string_symbol(s->z, name), Z3_mk_bool_sort(s->z));
}

Z3_ast smt_not(struct smt *s, Z3_ast a)
{
	return Z3_mk_not(s->z, a);
}

Z3_ast smt_and(struct smt *s, Z3_ast a, Z3_ast b)
{
	return Z3_mk_and(s->z, 2, (Z3_ast[]){ a, b });
}

void smt_clause(struct smt *s, const Z3_ast *lits, size_t n)
{
	if (n == 1)
		smt_assert(s, lits[0]);
	else
		smt_assert(s, n ? Z3_mk_or(s->z, n, lits) : Z3_mk_false(s->z));
}

void smt_or2(struct smt *s, Z3_ast a, Z3_ast b)
{
	smt_clause(s, (Z3_ast[]){ a, b }, 2);
}

void smt_or3(struct smt *s, Z3_ast a, Z3_ast b, Z3_ast c)
{
	smt_clause(s, (Z3_ast[]){ a, b, c }, 3);
}

void smt_implies(struct smt *s, Z3_ast a, Z3_ast b)
{
	smt_or2(s, smt_not(s, a), b);
}

void smt_at_most(struct smt *s, const Z3_ast *lits, size_t n, unsigned k)
{
	if (n <= k)
		return;
	/* Pairs for few: plain clauses propagate best. */
	if (k == 1 && n <= 6) {
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < i; j++)
				smt_or2(s, smt_not(s, lits[i]), smt_not(s, lits[j]));
		return;
	}
	smt_assert(s, Z3_mk_atmost(s->z, n, lits, k));
}

static size_t atom_slot(const struct smt *s, uint32_t a, uint32_t b)
{
	uint64_t h = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15ull;
	size_t i = (h >> 20) & (s->table_cap - 1);

	while (s->table[i] && (s->atoms.v[s->table[i] - 1].a != a ||
			       s->atoms.v[s->table[i] - 1].b != b))
		i = (i + 1) & (s->table_cap - 1);
	return i;
}

static void grow_table(struct smt *s)
{
	free(s->table);
	s->table_cap = s->table_cap ? s->table_cap * 2 : 1024;
	s->table = xcalloc(s->table_cap, sizeof *s->table);
	for (size_t i = 0; i < s->atoms.n; i++)
		s->table[atom_slot(s, s->atoms.v[i].a, s->atoms.v[i].b)] = i + 1;
}

Z3_ast smt_lt(struct smt *s, uint32_t a, uint32_t b)
{
	size_t slot;
	uint32_t back;

	if (s->atoms.n * 2 >= s->table_cap)
		grow_table(s);
	slot = atom_slot(s, a, b);
	if (s->table[slot])
		return s->atoms.v[s->table[slot] - 1].lit;
	vec_push(&s->atoms, (struct smt_atom){ a, b, smt_bool(s), 0 });
	s->table[slot] = s->atoms.n;
	/* The shortest cycles are worth telling Z3 beforehand. */
	back = s->table[atom_slot(s, b, a)];
	if (back)
		smt_or2(s, smt_not(s, s->atoms.v[back - 1].lit),
			smt_not(s, s->atoms.v[s->atoms.n - 1].lit));
	return s->atoms.v[s->atoms.n - 1].lit;
}

bool smt_start(struct smt *s)
{
	if (!order_acyclic_start(s->g))
		return false;
	s->prop = smt_propagator_new(s);
	return true;
}

void smt_take_core(struct smt *s)
{
	Z3_ast_vector v = Z3_solver_get_unsat_core(s->z, s->s);

	s->core.n = 0;
	if (!v)
		return;
	Z3_ast_vector_inc_ref(s->z, v);
	for (unsigned i = 0; i < Z3_ast_vector_size(s->z, v); i++)
		vec_push(&s->core, Z3_ast_vector_get(s->z, v, i));
	Z3_ast_vector_dec_ref(s->z, v);
}

/* Z3's count of its own work, by which "rlimit" is measured too. */
static unsigned resources_used(struct smt *s)
{
	Z3_stats st = Z3_solver_get_statistics(s->z, s->s);
	unsigned used = 0;

	if (!st)
		return 0;
	Z3_stats_inc_ref(s->z, st);
	for (unsigned i = 0; i < Z3_stats_size(s->z, st); i++)
		if (!strcmp(Z3_stats_get_key(s->z, st, i), "rlimit count"))
			used = Z3_stats_get_uint_value(s->z, st, i);
	Z3_stats_dec_ref(s->z, st);
	return used;
}

/* Milliseconds a question may take by the clock. */
static unsigned time_left(const struct smt *s, double effort)
{
	double left = s->limit && s->limit->deadline > 0 ? s->limit->deadline - smt_now() : 1e9;

	if (effort > 0 && PATIENCE_LEAST + effort * PATIENCE < left)
		left = PATIENCE_LEAST + effort * PATIENCE;
	return left < 4e6 ? (left > 0 ? (unsigned)(left * 1000) : 0) + 1 : UINT32_MAX;
}

/* Here, because every question passes here, whoever asks it. */
static void count_question(const struct smt *s, Z3_lbool answer, double spent)
{
	struct smt_limit *l = s->limit;

	log_line(LOG_SOLVE, 2, "%zu clauses, %zu Booleans: %s, effort %.3f", s->clauses, s->bools,
		 answer == Z3_L_TRUE ? "yes" : answer == Z3_L_FALSE ? "no" : "unknown", spent);
	if (!l)
		return;
	l->spent += spent;
	l->questions++;
	if (s->clauses >= l->clauses) {
		l->clauses = s->clauses;
		l->bools = s->bools;
	}
}

static Z3_lbool ask(struct smt *s, const Z3_ast *assume, size_t n, double effort)
{
	unsigned before = resources_used(s);
	uint64_t looked = order_acyclic_looked_at(s->g);
	Z3_lbool r;

	s->look_end = effort > 0 ? looked + (uint64_t)(effort * NODES) : UINT64_MAX;
	set_params(s, time_left(s, effort),
		   effort > 0 && effort < 300 ? (unsigned)(effort * RESOURCES) : 0);
	r = Z3_solver_check_assumptions(s->z, s->s, n, assume);
	count_question(s, r, (resources_used(s) - before) / RESOURCES + (order_acyclic_looked_at(s->g) - looked) / NODES);
	return r;
}

enum smt_result smt_check(struct smt *s, const Z3_ast *assume, size_t n, double effort)
{
	Z3_lbool r;

	if (smt_expired(s->limit))
		return SMT_UNKNOWN;
	r = ask(s, assume, n, effort);
	if (r == Z3_L_FALSE)
		return SMT_UNSAT;
	if (r != Z3_L_TRUE)
		return SMT_UNKNOWN;
	if (s->model)
		Z3_model_dec_ref(s->z, s->model);
	s->model = Z3_solver_get_model(s->z, s->s);
	if (!s->model)
		return SMT_UNKNOWN;
	Z3_model_inc_ref(s->z, s->model);
	return SMT_SAT;
}

bool smt_in_core(const struct smt *s, Z3_ast assumed)
{
	for (size_t i = 0; i < s->core.n; i++)
		if (s->core.v[i] == assumed)
			return true;
	return false;
}

bool smt_is_true(struct smt *s, Z3_ast lit)
{
	Z3_ast v;

	return Z3_model_eval(s->z, s->model, lit, true, &v) &&
	       Z3_get_bool_value(s->z, v) == Z3_L_TRUE;
}

uint64_t smt_value(struct smt *s, Z3_ast term)
{
	Z3_ast v;
	int64_t i;
	uint64_t u;

	if (!Z3_model_eval(s->z, s->model, term, true, &v))
		return 0;
	if (Z3_get_numeral_uint64(s->z, v, &u))
		return u;
	return Z3_get_numeral_int64(s->z, v, &i) ? (uint64_t)i : 0;
}

void smt_order(struct smt *s, const uint64_t *rank, uint32_t *out)
{
	size_t n;
	const uint32_t *atoms = smt_propagator_true(s->prop, &n);
	bool *in = xcalloc(n + 1, sizeof *in), cycle;

	/* Edges that stayed in the graph (level zero) simply appear twice. */
	for (size_t i = 0; i < n; i++) {
		const struct smt_atom *x = &s->atoms.v[atoms[i]];

		order_acyclic_add(s->g, x->a, x->b, atoms[i], &cycle);
		in[i] = !cycle;
	}
	order_acyclic_sort(s->g, rank, out);
	for (size_t i = n; i-- > 0;)
		if (in[i])
			order_acyclic_undo(s->g, s->atoms.v[atoms[i]].a, s->atoms.v[atoms[i]].b);
	free(in);
}
