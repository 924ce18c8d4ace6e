/* What MPI asks for: messages in the order in which they are handled, receives in the order in
 * which they are posted, the first that fits. No speculation, no tables. */
#include <string.h>

#include "explore.h"

static bool fits(const struct world *w, unsigned int recv, const struct message *m)
{
	return msg_recv_matches(&w->recv[recv].recv, m->src, m->unexp.tag);
}

void oracle_post(struct world *w, unsigned int recv)
{
	for (unsigned int i = 0; i < w->n_unexp; i++) {
		if (!fits(w, recv, w->unexp[i]))
			continue;
		w->unexp[i]->want = (int8_t)recv;
		w->n_unexp--;
		memmove(&w->unexp[i], &w->unexp[i + 1], (w->n_unexp - i) * sizeof(w->unexp[0]));
		return;
	}
	w->posted[w->n_posted++] = (uint8_t)recv;
}

static void oracle_unpost(struct world *w, unsigned int at)
{
	w->n_posted--;
	memmove(&w->posted[at], &w->posted[at + 1], w->n_posted - at);
}

void oracle_message(struct world *w, struct message *m)
{
	for (unsigned int i = 0; i < w->n_posted; i++) {
		if (!fits(w, w->posted[i], m))
			continue;
		m->want = (int8_t)w->posted[i];
		oracle_unpost(w, i);
		return;
	}
	w->unexp[w->n_unexp++] = m;
}

/* Returns whether the receive could be cancelled. */
bool oracle_cancel(struct world *w, unsigned int recv)
{
	for (unsigned int i = 0; i < w->n_posted; i++) {
		if (w->posted[i] == recv) {
			oracle_unpost(w, i);
			return true;
		}
	}
	return false;
}
