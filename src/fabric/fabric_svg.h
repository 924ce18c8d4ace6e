/* Writing SVG: a pen that remembers the first failure, text that can not break the
 * document, and the colours of a load. */
#ifndef WEFT_FABRIC_SVG_H
#define WEFT_FABRIC_SVG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct fabric_svg {
	FILE *to;
	int error; /* -errno of the first write that failed; later ones are not tried */
};

void fabric_svg_put(struct fabric_svg *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* At most len bytes of text, up to a zero byte, as character data. What XML can not hold
 * (control characters, broken UTF-8) becomes U+FFFD. */
void fabric_svg_text(struct fabric_svg *s, const char *text, size_t len);

/* The colour of a load, 0 … 1: from a calm grey-blue over gold to red, as 0xRRGGBB. */
uint32_t fabric_svg_colour(double load);

#endif
