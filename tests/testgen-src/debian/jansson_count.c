/* jansson's reference counts, which are atomic and inline: two threads hold a value and let it go. */
#include <jansson.h>
#include <stdlib.h>

struct counted {
	json_t *value;
};

struct counted *counted_new(int n)
{
	struct counted *c = malloc(sizeof *c);

	c->value = json_array();
	json_array_append_new(c->value, json_integer(n));
	return c;
}

int counted_size(struct counted *c)
{
	json_t *mine = json_incref(c->value);
	int n = (int)json_array_size(mine);

	json_decref(mine);
	return n;
}

json_int_t counted_first(struct counted *c)
{
	json_t *mine = json_incref(c->value);
	json_t *first = json_incref(json_array_get(mine, 0));
	json_int_t n = json_integer_value(first);

	json_decref(mine);
	json_decref(first);
	return n;
}

void counted_free(struct counted *c)
{
	json_decref(c->value);
	free(c);
}
