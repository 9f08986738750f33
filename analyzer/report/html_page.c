/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is around the contents of a page: head, style, script. */
#include "analyzer/report/html.h"
#include "analyzer/report/sha256.h"

#define EMBED(name, file)                                                  \
	__asm__(".pushsection .rodata\n"                                   \
		".global " #name "\n.type " #name ", @object\n"            \
		#name ":\n.incbin \"" file "\"\n"                          \
		".global " #name "_end\n" #name "_end:\n.byte 0\n"         \
		".popsection\n");                                          \
	extern const char name[], name##_end[]

EMBED(report_page_css, "analyzer/report/page.css");
EMBED(report_page_js, "analyzer/report/page.js");

void html_begin(FILE *f, const char *program, const char *headline, bool foreign)
{
	char hash[45];

	sha256_base64(report_page_js, (size_t)(report_page_js_end - report_page_js), hash);
	fprintf(f, "<!doctype html>\n<html lang=\"en\" class=\"no-script%s\">\n<head>\n"
		"<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'unsafe-inline'; script-src 'sha256-%s'; base-uri 'none'; "
		"form-action 'none'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"generator\" content=\"csched " CSCHED_VERSION "\">\n<title>",
		foreign ? " foreign" : "", hash);
	html_text(f, program);
	fputs(": ", f);
	html_text(f, headline);
	fprintf(f, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", report_page_css);
}

void html_end(FILE *f)
{
	fprintf(f, "<script>%s</script>\n</body>\n</html>\n", report_page_js);
}
