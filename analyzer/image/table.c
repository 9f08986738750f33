/* Open addressing with linear probing; never shrinks, nothing is removed. */
#include "analyzer/image/internal.h"

static size_t home(const struct img_table *t, uint64_t key)
{
	return (size_t)((key * 0x9e3779b97f4a7c15ull) >> 17) & (t->cap - 1);
}

uint64_t *img_table_find(const struct img_table *t, uint64_t key)
{
	if (!t->cap)
		return NULL;
	for (size_t i = home(t, key); t->slot[i].used; i = (i + 1) & (t->cap - 1))
		if (t->slot[i].key == key)
			return &t->slot[i].value;
	return NULL;
}

static void grow(struct img_table *t)
{
	struct img_table bigger = { .cap = t->cap ? t->cap * 2 : 64 };

	bigger.slot = xcalloc(bigger.cap, sizeof *bigger.slot);
	for (size_t i = 0; i < t->cap; i++)
		if (t->slot[i].used)
			img_table_put(&bigger, t->slot[i].key, t->slot[i].value);
	free(t->slot);
	*t = bigger;
}

void img_table_put(struct img_table *t, uint64_t key, uint64_t value)
{
	uint64_t *old = img_table_find(t, key);
	size_t i;

	if (old) {
		*old = value;
		return;
	}
	if (2 * t->n >= t->cap)
		grow(t);
	for (i = home(t, key); t->slot[i].used;)
		i = (i + 1) & (t->cap - 1);
	t->slot[i] = (struct img_slot){ key, value, true };
	t->n++;
}

void img_table_free(struct img_table *t)
{
	free(t->slot);
	*t = (struct img_table){ 0 };
}
