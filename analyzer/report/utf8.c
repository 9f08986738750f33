#include "analyzer/report/internal.h"

size_t rep_utf8(const char *text, uint32_t *c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)text;
	size_t n = *s < 0x80 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 :
		   *s < 0xf5 ? 4 : 0;

	*c = n > 1 ? *s & (0x7fu >> n) : *s;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (s[i] & 0x3f);
	}
	if (!n || *c < least[n] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000))
		return 0;
	/* C0 and C1 controls, and what turns the writing direction round. */
	if (*c < 0x20 || (*c >= 0x7f && *c < 0xa0) || (*c >= 0x202a && *c <= 0x202e) ||
	    (*c >= 0x2066 && *c <= 0x2069))
		return 0;
	return n;
}
