/* Windows are counted in bytes. CUBIC's time is in milliseconds, so that its cubes fit into
 * 64 bits; epochs beyond 2^20 ms (17 minutes) count as that long. */
#include "rd_cc.h"
#include "rd_seq.h"

#define BETA_NUM  7 /* a loss leaves 0.7 of the window (RFC 9438, 4.6), ... */
#define BETA_LATE 6 /* ... or 0.6, where that is done later than TCP does it */
#define BETA_DEN  10
/* The most round trips between a loss and the reduction, by which part round trips must have become
 * shorter to make it earlier, and which part of the window may be lost meanwhile. */
#define WAIT_ROUNDS 10
#define WAIT_LESS   12
#define WAIT_LOST   8
/* Less than so many packets are not enough to wait with. */
#define WAIT_LEAST 8
#define MS         UINT64_C(1000000)
#define T_MAX      (UINT64_C(1) << 20)

/* HyStart++ (RFC 9406, 4.3). A sample stands for a whole acknowledgement, which often covers
 * many packets: fewer of them are enough than in the RFC. */
#define RTT_THRESH_MIN (4 * MS)
#define RTT_THRESH_MAX (16 * MS)
#define RTT_SAMPLES    3
#define CSS_DIVISOR    4
#define CSS_ROUNDS     5

static uint32_t min32(uint64_t a, uint32_t b)
{
	return a < b ? (uint32_t)a : b;
}

static uint32_t cc_least(const struct rd_cc *cc)
{
	return 2 * cc->mss;
}

void rd_cc_init(struct rd_cc *cc, uint32_t mss, uint32_t cap)
{
	uint32_t first = 10 * mss;

	*cc = (struct rd_cc){
		.mss = mss,
		.cap = cap > 2 * mss ? cap : 2 * mss,
		.threshold = UINT32_MAX,
		.round_min = UINT64_MAX,
		.last_min = UINT64_MAX,
	};
	/* RFC 6928: ten packets, but not ten large ones. */
	if (first > 14600)
		first = 14600 > 2 * mss ? 14600 : 2 * mss;
	cc->window = min32(first, cc->cap);
}

uint32_t rd_cc_room(const struct rd_cc *cc)
{
	uint32_t room = cc->window > cc->flight ? cc->window - cc->flight : 0;

	if ((!cc->flight || cc->probe) && room < cc->mss)
		return cc->mss;
	return room;
}

void rd_cc_sent(struct rd_cc *cc, uint32_t bytes)
{
	cc->flight += bytes;
	cc->probe = false;
}

void rd_cc_forget(struct rd_cc *cc, uint32_t bytes)
{
	cc->flight = cc->flight > bytes ? cc->flight - bytes : 0;
}

void rd_cc_probe(struct rd_cc *cc)
{
	cc->probe = true;
}

static void grow(struct rd_cc *cc, uint64_t bytes)
{
	cc->window = min32(cc->window + bytes, cc->cap);
}

/* HyStart++: a round is what is on the way at its beginning. Its least RTT against that of
 * the round before tells whether a queue builds up. If so, five rounds of slower growth have
 * to confirm it. */
static void hystart_round(struct rd_cc *cc, uint32_t order, uint32_t next)
{
	if (cc->round_any && rd_seq_before(order, cc->round_end))
		return;
	cc->round_any = true;
	cc->round_end = next;
	cc->last_min = cc->round_min;
	cc->round_min = UINT64_MAX;
	cc->round_n = 0;
	if (cc->css && cc->css++ >= CSS_ROUNDS)
		cc->threshold = cc->window;
}

static void hystart_sample(struct rd_cc *cc, uint64_t rtt)
{
	uint64_t thresh;

	if (rtt < cc->round_min)
		cc->round_min = rtt;
	if (cc->round_n < RTT_SAMPLES && ++cc->round_n < RTT_SAMPLES)
		return;
	if (cc->css) {
		if (cc->round_min < cc->css_min)
			cc->css = 0;
		return;
	}
	if (cc->last_min == UINT64_MAX)
		return;
	thresh = cc->last_min / 8;
	if (thresh < RTT_THRESH_MIN)
		thresh = RTT_THRESH_MIN;
	if (thresh > RTT_THRESH_MAX)
		thresh = RTT_THRESH_MAX;
	if (cc->round_min >= cc->last_min + thresh) {
		cc->css = 1;
		cc->css_min = cc->round_min;
	}
}

static void slow_start(struct rd_cc *cc, uint32_t bytes, uint32_t order, uint32_t next,
		       uint64_t rtt)
{
	hystart_round(cc, order, next);
	if (rtt)
		hystart_sample(cc, rtt);
	if (cc->window < cc->threshold)
		grow(cc, cc->css ? bytes / CSS_DIVISOR : bytes);
}

/* The cube root, rounded down. */
static uint32_t cube_root(uint64_t x)
{
	uint64_t lo = 0, hi = T_MAX;

	while (lo + 1 < hi) {
		uint64_t mid = (lo + hi) / 2;

		if (mid * mid * mid <= x)
			lo = mid;
		else
			hi = mid;
	}
	return (uint32_t)lo;
}

/* C = 0.4 packets/s^3 is mss / 2.5e9 bytes/ms^3. */
static void cubic_begin(struct rd_cc *cc, uint64_t now)
{
	cc->epoch = now;
	cc->w_est = cc->window;
	cc->credit = 0;
	cc->est_credit = 0;
	if (cc->w_max < cc->window)
		cc->w_max = cc->window;
	cc->k = cube_root((uint64_t)(cc->w_max - cc->window) * UINT64_C(2500000000) / cc->mss);
}

static uint64_t cubic_at(const struct rd_cc *cc, uint64_t ms)
{
	uint64_t d = ms > cc->k ? ms - cc->k : cc->k - ms, cube;

	if (d > T_MAX)
		d = T_MAX;
	/* mss < 2^17 and d^3 <= 2^60: divided first where the product would not fit. */
	cube = d * d * d;
	cube = cube < UINT64_C(1) << 46 ? cube * cc->mss / UINT64_C(2500000000)
					: cube / UINT64_C(2500000000) * cc->mss;
	if (ms > cc->k)
		return cc->w_max + cube;
	return cube < cc->w_max ? cc->w_max - cube : 0;
}

/* Adds num / den to *value, the remainder to what is kept in *credit. */
static void add_ratio(uint32_t *value, uint32_t *credit, uint64_t num, uint32_t den, uint32_t cap)
{
	num += *credit;
	*value = min32(*value + num / den, cap);
	*credit = (uint32_t)(num % den);
}

/* What Reno would have, with the growth that makes up for the smaller reductions (RFC 9438,
 * 4.3: 3 (1 - beta) / (1 + beta) = 9/17 packets per round trip). The RFC lets it grow faster
 * beyond the last maximum; Linux does not, and it is Linux that we meet. */
static void reno_friend(struct rd_cc *cc, uint32_t bytes)
{
	uint64_t num = (uint64_t)cc->mss * bytes * 9 / 17;

	add_ratio(&cc->w_est, &cc->est_credit, num, cc->window, cc->cap);
}

static void avoidance(struct rd_cc *cc, uint32_t bytes, uint64_t rtt, uint64_t now)
{
	uint64_t target, most = cc->window + cc->window / 2;

	if (!cc->epoch)
		cubic_begin(cc, now);
	reno_friend(cc, bytes);
	target = cubic_at(cc, (now - cc->epoch + rtt) / MS);
	if (target > most)
		target = most;
	if (target > cc->w_est && target > cc->window)
		add_ratio(&cc->window, &cc->credit, (target - cc->window) * bytes, cc->window,
			  cc->cap);
	if (cc->window < cc->w_est)
		cc->window = cc->w_est;
}

static void reduce(struct rd_cc *cc, uint32_t next, uint32_t beta)
{
	uint32_t left = (uint32_t)((uint64_t)cc->window * beta / BETA_DEN);

	/* Fast convergence (RFC 9438, 4.7): who is losing ground gives way to newcomers. */
	cc->w_max = cc->window;
	if (cc->window < cc->w_last)
		cc->w_max =
			(uint32_t)((uint64_t)cc->window * (BETA_DEN + BETA_NUM) / (2 * BETA_DEN));
	cc->w_last = cc->window;
	cc->window = left > cc_least(cc) ? left : cc_least(cc);
	cc->threshold = cc->window;
	cc->epoch = 0;
	cc->css = 0;
	cc->wait = 0;
	cc->reduced = next - 1;
	cc->reduced_any = true;
}

/* A full queue drops a packet of whoever comes first. Would that one give way at once, the others
 * never learned that the queue was full, and would take what it has left: chance decides, or the
 * rhythm in which packets happen to come, which favours the same flow again and again. So it waits,
 * growing no further, until the others have lost something, too, and give way, which makes the
 * queue and the round trip shorter; or for some round trips, if there are no others. All give way
 * then, each by its share, and shares become equal. True: not yet. */
static bool wait_for_others(struct rd_cc *cc, uint32_t bytes, uint32_t next)
{
	if (cc->window < cc->threshold || cc->window < WAIT_LEAST * cc->mss)
		return false;
	if (!cc->wait) {
		cc->wait = WAIT_ROUNDS;
		cc->wait_end = next;
		cc->wait_lost = 0;
		cc->wait_rtt = 0;
		cc->wait_min = UINT64_MAX;
	}
	cc->wait_lost += bytes;
	return cc->wait_lost <= cc->window / WAIT_LOST;
}

/* True: the window is not to grow. */
static bool waiting(struct rd_cc *cc, uint32_t order, uint32_t next, uint64_t rtt)
{
	bool less;

	if (!cc->wait)
		return false;
	if (rtt && rtt < cc->wait_min)
		cc->wait_min = rtt;
	if (rd_seq_before(order, cc->wait_end))
		return true;
	cc->wait_end = next;
	if (!cc->wait_rtt)
		cc->wait_rtt = cc->wait_min;
	less = cc->wait_min < cc->wait_rtt - cc->wait_rtt / WAIT_LESS;
	cc->wait_min = UINT64_MAX;
	if (!--cc->wait || less)
		reduce(cc, next, BETA_LATE);
	return true;
}

void rd_cc_acked(struct rd_cc *cc, uint32_t bytes, uint32_t order, uint32_t next, uint64_t rtt,
		 bool limited, uint64_t now)
{
	rd_cc_forget(cc, bytes);
	cc->timed_out = false;
	if (cc->reduced_any && !rd_seq_before(cc->reduced, order))
		return; /* sent before the window was reduced: tells nothing about it */
	/* Forgotten before it is so old that it would seem to lie in the future. */
	if (cc->reduced_any && order - cc->reduced > UINT32_C(1) << 30)
		cc->reduced_any = false;
	if (waiting(cc, order, next, rtt))
		return;
	if (!limited) {
		cc->epoch = 0;
		return;
	}
	if (cc->window < cc->threshold)
		slow_start(cc, bytes, order, next, rtt);
	else
		avoidance(cc, bytes, rtt, now);
}

void rd_cc_lost(struct rd_cc *cc, uint32_t bytes, uint32_t order, uint32_t next, uint64_t now)
{
	(void)now;
	rd_cc_forget(cc, bytes);
	/* After a timeout there is nothing left to reduce, and the threshold has to survive. */
	if (cc->timed_out || (cc->reduced_any && !rd_seq_before(cc->reduced, order)))
		return;
	if (!wait_for_others(cc, bytes, next))
		reduce(cc, next, BETA_NUM);
}

void rd_cc_timeout(struct rd_cc *cc)
{
	cc->window = cc_least(cc);
	cc->timed_out = true;
	cc->wait = 0;
	cc->round_any = false;
	cc->css = 0;
}
