/* What policies of small pieces share: how long a piece is, who takes the next, and what
 * completions say of the rates of paths. */
#include "stripe_in.h"

#define SMOOTH 0.3  /* of a new rate; the rest is of the old one */
#define DRIFT  0.05 /* per message, of paths that nobody uses */
/* Towards so much of a fair part of the line: towards all of it, a path that nobody uses would soon
 * look better than any that shares a link, and all would change their paths all the time. */
#define FAIR 0.9
#define AGE  0.01 /* per message, of the best rate that was seen */

void stripe_rate_begin(const struct stripe_conf *c, struct stripe_msg *m)
{
	uint64_t piece = m->bytes / STRIPE_PIECES;

	piece = piece < STRIPE_PIECE_MAX ? piece : STRIPE_PIECE_MAX;
	piece = piece > c->least ? piece : c->least;
	m->piece = piece ? piece : 1;
	m->late = true; /* there was nothing before */
}

/* At the end of a message pieces may be shorter, but are still worth their cost. */
static uint64_t shortest(const struct stripe_conf *c, const struct stripe_msg *m)
{
	uint64_t s = m->piece / 4, least = c->last ? c->last : c->least;

	s = s > least ? s : least;
	s = s < m->piece ? s : m->piece;
	return s ? s : 1;
}

double stripe_line(const struct stripe_conf *c, const struct stripe_peer *p)
{
	return c->line > 0 ? c->line : p->line;
}

double stripe_remembered(const struct stripe_conf *c, const struct stripe_peer *p, uint32_t path,
			 uint32_t among)
{
	double line = stripe_line(c, p), known = 0;
	uint32_t n = 0;

	if (p->weight[path] > 0)
		return p->weight[path];
	if (line > 0)
		return line / among;
	for (uint32_t i = 0; i < c->paths; i++) {
		known += p->weight[i];
		n += p->weight[i] > 0;
	}
	return n ? known / n : 0;
}

/* ---- how much ---- */

/* A piece costs some ten microseconds of both processors, in requests, acknowledgements and
 * packets, and where many hosts share a processor, as in a lab, that is felt. So only lines on
 * which a piece takes long have shorter ones: what is under way there can not take another path
 * any more. Shorter than that, headers are felt, too. */
#define PIECE_NS    2500000
#define LEAST_LEAST 4096
#define LEAST_MOST  16384

uint64_t stripe_least(double line)
{
	double least = line * PIECE_NS;

	if (!(line > 0) || least > LEAST_MOST)
		return LEAST_MOST;
	return least < LEAST_LEAST ? LEAST_LEAST : (uint64_t)least;
}

/* ---- giving out ---- */

/* What a path may still take for all to end together: the time that everything left and under way
 * needs at the rates of all, times its rate, without what it has under way. */
static double due(const struct stripe_conf *c, const struct stripe_peer *p,
		  const struct stripe_msg *m, const uint32_t *path, uint32_t n, uint32_t of)
{
	double rates = 0, bytes = (double)m->left;

	for (uint32_t i = 0; i < n; i++) {
		if (!stripe_usable(c, p, path[i]))
			continue;
		rates += stripe_remembered(c, p, path[i], n);
		bytes += (double)m->flying[path[i]];
	}
	if (!(rates > 0))
		return (double)m->piece;
	return bytes * stripe_remembered(c, p, of, n) / rates - (double)m->flying[of];
}

/* The one with the least under way that may have more; of these the fastest. */
static bool choose(const struct stripe_conf *c, const struct stripe_peer *p,
		   const struct stripe_msg *m, const uint32_t *path, uint32_t n, double least,
		   struct stripe_piece *piece)
{
	uint32_t best = n;
	double share = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = path[i];
		double d;

		/* One message after the other, but each has something under way. */
		if ((p->out[k] >= STRIPE_OUTSTANDING && m->all_out) || !stripe_usable(c, p, k))
			continue;
		if (best < n &&
		    (m->out[k] > m->out[path[best]] ||
		     (m->out[k] == m->out[path[best]] &&
		      stripe_remembered(c, p, k, n) <= stripe_remembered(c, p, path[best], n))))
			continue;
		d = due(c, p, m, path, n, k);
		if (d < least)
			continue;
		best = i;
		share = d;
	}
	if (best == n)
		return false;
	piece->path = path[best];
	piece->bytes = share < (double)m->piece ? (uint64_t)(share > 0 ? share : 0) : m->piece;
	if (piece->bytes < shortest(c, m))
		piece->bytes = shortest(c, m);
	return true;
}

/* Pieces at the end are no longer than what is due to their path, but worth their cost; a path to
 * which less than half of that is due gets none, unless nobody else has anything to do. */
bool stripe_rate_next(const struct stripe_conf *c, const struct stripe_peer *p,
		      const struct stripe_msg *m, const uint32_t *path, uint32_t n,
		      struct stripe_piece *piece)
{
	uint64_t half = shortest(c, m) / 2, fresh = m->bytes - m->at;

	if (!choose(c, p, m, path, n, (double)half, piece) &&
	    (m->all_out || !choose(c, p, m, path, n, -1e300, piece)))
		return false;
	/* No crumbs. */
	if (piece->bytes > fresh || fresh - piece->bytes < half)
		piece->bytes = fresh;
	return true;
}

/* ---- learning ---- */

/* Over two completions, since both pieces that a path has under way may share it and end nearly
 * together: from one to the next would be all or nothing. */
static void take_sample(struct stripe_msg *m, const struct stripe_piece *piece, uint64_t began,
			uint64_t now)
{
	uint32_t k = piece->path;

	/* It had nothing to do. */
	if (began >= m->last[k])
		m->seen[k] = 0;
	if (m->seen[k] == 0)
		m->before[k] = m->last[k] > began ? m->last[k] : began;
	else if (now > m->before[k])
		m->sample[k] =
			(double)(m->last_bytes[k] + piece->bytes) / (double)(now - m->before[k]);
	if (m->seen[k]++)
		m->before[k] = m->last[k];
	m->last[k] = now;
	m->last_bytes[k] = piece->bytes;
}

/* A slow rate took long to be seen: a sample that spans so many times what was expected counts as
 * so many. Otherwise a path that has become very slow would be found out over many messages, each
 * of which waits for it. */
static double smoothed(double w, double sample)
{
	double keep = 1 - SMOOTH;

	for (double spans = w / sample; spans >= 2 && keep > .01; spans--)
		keep *= 1 - SMOOTH;
	return sample + keep * (w - sample);
}

/* What was found together counts, unless it was all that was under way: then it had been there
 * for nobody knows how long. */
static uint32_t count(struct stripe_peer *p, struct stripe_msg *m, bool late)
{
	uint32_t changed = 0;

	for (uint32_t k = 0; k < STRIPE_PATHS_MAX; k++) {
		double *w = &p->weight[k];

		if (late)
			m->seen[k] = 0;
		else if (m->sample[k] > 0) {
			*w = *w > 0 ? smoothed(*w, m->sample[k]) : m->sample[k];
			changed |= 1u << k;
		}
		m->sample[k] = 0;
	}
	return changed;
}

uint32_t stripe_rate_done(struct stripe_peer *p, struct stripe_msg *m,
			  const struct stripe_piece *piece, uint64_t began, uint64_t now)
{
	uint32_t changed = 0;

	if (m->found == 1) {
		changed = count(p, m, m->late);
		m->dry = m->late;
	}
	take_sample(m, piece, began, now);
	/* That the last ones end together is how it should be, unless it was so before. */
	m->late = m->were_out > 1 && m->found >= m->were_out && (m->left || m->dry);
	m->torn |= m->late && m->left;
	return changed;
}

/* What is remembered of paths that a message did not use grows old. */
static void drift(const struct stripe_conf *c, struct stripe_peer *p, const struct stripe_msg *m)
{
	double fair = FAIR * stripe_line(c, p) / m->paths;

	for (uint32_t i = 0; i < c->paths; i++)
		if (!(m->used >> i & 1) && p->weight[i] > 0)
			p->weight[i] += DRIFT * (fair - p->weight[i]);
}

double stripe_rate_end(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		       uint64_t now)
{
	double rate;

	count(p, m, m->late);
	drift(c, p, m);
	if (m->late || m->torn || now <= m->began)
		return 0;
	rate = (double)m->bytes / (double)(now - m->began);
	/* A message of few pieces tells more of how long one takes. */
	if (m->bytes / m->piece < 4 * m->paths && m->bytes / m->piece < STRIPE_PIECES / 4)
		return 0;
	p->line -= AGE * p->line;
	p->line = rate > p->line ? rate : p->line;
	return rate;
}
