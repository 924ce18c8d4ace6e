#include "coll_tags.h"

void coll_tags_share(struct coll_tags *t, int most, uint32_t set, uint32_t rank, uint32_t ranks)
{
	int64_t share = ((int64_t)most + 1) / ((int64_t)ranks * set);

	t->set = set;
	t->n_places = share < COLL_MAX_COMMS ? (uint32_t)share : COLL_MAX_COMMS;
	t->turns = t->n_places ? share / t->n_places : 0;
	t->from = rank * t->turns * t->n_places;
}

int coll_tags_give(struct coll_tags *t)
{
	for (uint32_t n = 0; n < t->n_places; n++) {
		t->last = (t->last + 1) % t->n_places;
		if (t->place[t->last].given)
			continue;
		t->place[t->last].given = true;
		return (int)((t->from + t->place[t->last].turn++ % t->turns * t->n_places +
			      t->last) *
			     t->set);
	}
	return -1;
}

void coll_tags_back(struct coll_tags *t, int tag)
{
	t->place[(tag / (int64_t)t->set - t->from) % t->n_places].given = false;
}
