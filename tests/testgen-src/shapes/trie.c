/* A trie of lower-case words: removal frees nodes that a lookup without the lock still walks. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct trie_node {
	struct trie_node *down[26];
	bool is_word;
	long value;
} trie_node;

typedef struct {
	pthread_rwlock_t lock;
	trie_node root;
	size_t words;
} trie;

trie *trie_create(void)
{
	trie *t = calloc(1, sizeof *t);

	pthread_rwlock_init(&t->lock, NULL);
	return t;
}

bool trie_put(trie *t, const char *word, long value)
{
	trie_node *n = &t->root;

	for (const char *p = word; *p; p++)
		if (*p < 'a' || *p > 'z')
			return false;
	pthread_rwlock_wrlock(&t->lock);
	for (; *word; word++) {
		if (!n->down[*word - 'a'])
			n->down[*word - 'a'] = calloc(1, sizeof *n);
		n = n->down[*word - 'a'];
	}
	t->words += !n->is_word;
	n->is_word = true;
	n->value = value;
	pthread_rwlock_unlock(&t->lock);
	return true;
}

/* Is the subtree empty now? */
static bool cut(trie *t, trie_node *n, const char *word)
{
	if (!*word) {
		t->words -= n->is_word;
		n->is_word = false;
	} else if (*word >= 'a' && *word <= 'z' && n->down[*word - 'a'] && cut(t, n->down[*word - 'a'], word + 1)) {
		free(n->down[*word - 'a']);
		n->down[*word - 'a'] = NULL;
	}
	for (int i = 0; i < 26; i++)
		if (n->down[i])
			return false;
	return !n->is_word;
}

void trie_remove(trie *t, const char *word)
{
	pthread_rwlock_wrlock(&t->lock);
	cut(t, &t->root, word);
	pthread_rwlock_unlock(&t->lock);
}

bool trie_get(trie *t, const char *word, long *value)
{
	const trie_node *n = &t->root;
	bool found;

#ifdef FIXED
	pthread_rwlock_rdlock(&t->lock);
#endif
	for (; *word && n; word++)
		n = *word >= 'a' && *word <= 'z' && n->down[*word - 'a'] ? n->down[*word - 'a'] : NULL;
	found = n && n->is_word;
	if (found && value)
		*value = n->value;
#ifdef FIXED
	pthread_rwlock_unlock(&t->lock);
#endif
	return found;
}
