#include "msg_silent.h"

#include "util_clock.h"

#define PAUSE_FIRST (500 * UTIL_NS_PER_MS)
#define PAUSE_MOST  (16 * UTIL_NS_PER_S)

static bool rest(struct msg_silent *s, bool longer, uint64_t now)
{
	s->pause = longer ? 2 * s->pause : PAUSE_FIRST;
	if (s->pause > PAUSE_MOST)
		s->pause = PAUSE_MOST;
	s->until = now + s->pause;
	s->state = MSG_SILENT_RESTS;
	return false;
}

static bool on_trial(struct msg_silent *s, uint64_t given, uint32_t out, uint64_t now)
{
	if (given == s->given)
		return true;
	if (given - out <= s->given)
		return false;
	return rest(s, true, now);
}

bool msg_silent_use(struct msg_silent *s, bool silent, uint64_t given, uint32_t out, uint64_t now)
{
	if (s->state == MSG_SILENT_RESTS) {
		if (now < s->until)
			return false;
		s->state = MSG_SILENT_TRIED;
		s->given = given;
	}
	if (!silent) {
		s->state = MSG_SILENT_NOT;
		return true;
	}
	if (s->state == MSG_SILENT_TRIED)
		return on_trial(s, given, out, now);
	/* Not long ago it was so, too. */
	return rest(s, now - s->until < s->pause, now);
}
