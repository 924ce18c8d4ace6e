#include "coll_watch.h"

enum coll_watch_next coll_watch_step(struct coll_watch *w, uint32_t turn, bool lost, uint64_t now,
				     uint64_t patience)
{
	bool same = turn == w->turn;

	if (!same || !(turn & 1)) {
		*w = (struct coll_watch){.turn = turn, .since = now};
		return same ? COLL_WATCH_NOTHING : COLL_WATCH_WAIT;
	}
	if (now - w->since < COLL_WATCH_AFTER_NS)
		return COLL_WATCH_WAIT;
	if (!lost)
		w->lost = 0;
	else if (!w->lost)
		w->lost = now;
	else if (patience && now - w->lost >= patience)
		return COLL_WATCH_END;
	return COLL_WATCH_LOOK;
}

uint64_t coll_watch_lost_at(uint64_t asked, uint64_t failed)
{
	return failed - asked < COLL_WATCH_SURE_NS ? failed : asked + COLL_WATCH_SILENT_NS;
}
