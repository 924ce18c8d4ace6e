#include "fabric_svg.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

void fabric_svg_put(struct fabric_svg *s, const char *fmt, ...)
{
	va_list ap;

	if (s->error)
		return;
	va_start(ap, fmt);
	errno = EIO; /* if nobody says what it was */
	if (vfprintf(s->to, fmt, ap) < 0)
		s->error = -errno;
	va_end(ap);
}

/* ---- text ---- */

/* The length of the UTF-8 character at p that XML 1.0 allows, or 0. RFC 3629 section 4:
 * no overlong forms, no surrogates, nothing beyond U+10FFFF. */
static size_t utf8_len(const unsigned char *p, size_t len)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t c;

	if (n == 1)
		return p[0] >= 0x20 || p[0] == '\t' || p[0] == '\n' || p[0] == '\r';
	if (p[0] < 0xc2 || p[0] > 0xf4 || n > len)
		return 0;
	c = p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || (c & ~1u) == 0xfffe)
		return 0;
	return n;
}

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void fabric_svg_text(struct fabric_svg *s, const char *text, size_t len)
{
	len = strnlen(text, len);
	for (size_t at = 0; at < len;) {
		size_t n = utf8_len((const unsigned char *)text + at, len - at);

		if (n == 0)
			fabric_svg_put(s, "\xef\xbf\xbd");
		else if (n == 1 && entity(text[at]))
			fabric_svg_put(s, "%s", entity(text[at]));
		else
			fabric_svg_put(s, "%.*s", (int)n, text + at);
		at += n ? n : 1;
	}
}

/* ---- colour ---- */

/* The stops are OKLab, in which equal steps look equally large and no mixture of two is
 * muddier than both (as blue and yellow are when mixed in RGB). Lightness falls from stop
 * to stop, so the order survives grey printing and colour blindness. */
static const struct stop {
	double at, L, a, b;
} stops[] = {
	{0.00, 0.800, -0.012, -0.022}, /* grey-blue */
	{0.30, 0.760, -0.045, -0.055}, /* pale blue */
	{0.55, 0.750, 0.020, 0.145},   /* gold */
	{0.78, 0.660, 0.110, 0.125},   /* orange */
	{1.00, 0.530, 0.182, 0.092},   /* red */
};

static uint32_t channel(double v)
{
	v = v <= 0.0031308 ? 12.92 * v : 1.055 * pow(v, 1 / 2.4) - 0.055;
	return (uint32_t)lround(255 * fmin(fmax(v, 0), 1));
}

/* The matrices of B. Ottosson, "A perceptual color space for image processing" (2020). */
static uint32_t oklab(double L, double a, double b)
{
	double l = pow(L + 0.3963377774 * a + 0.2158037573 * b, 3);
	double m = pow(L - 0.1055613458 * a - 0.0638541728 * b, 3);
	double s = pow(L - 0.0894841775 * a - 1.2914855480 * b, 3);

	return channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s) << 16 |
	       channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s) << 8 |
	       channel(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s);
}

uint32_t fabric_svg_colour(double load)
{
	const struct stop *s = stops;
	double f;

	load = fmin(fmax(load, 0), 1);
	while (load > s[1].at)
		s++;
	f = (load - s[0].at) / (s[1].at - s[0].at);
	return oklab(s[0].L + f * (s[1].L - s[0].L), s[0].a + f * (s[1].a - s[0].a),
		     s[0].b + f * (s[1].b - s[0].b));
}
