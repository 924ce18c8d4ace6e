/* RD: who may send now.
 *
 * A path that has something to send takes a place in the queue. Each may send some at a time and is
 * then behind the others, so that no peer waits for all that another one is sent. What is short
 * goes at once. The kernel tells how much of all sockets' waits in the own interface, and no more
 * is handed over than leaves soon (src/rd/rd_egress.h).
 */
#include <errno.h>
#include "rd_egress.h"
#include "rnic_rd.h"
#include "rnic_rd_shm.h"

/* When to try again what there was no memory for. */
#define NO_MEMORY_NS (10 * UTIL_NS_PER_MS)
/* A path whose packets on the way and to be sent are no more than this is not made to wait. */
#define SHORT 16384
/* What a path may send before it is another one's turn. */
#define TURN (64 * 1024)
/* Sending this much at once takes the lock for longer than others like to wait for it. */
#define ONE_GO (256 * 1024)
/* Sending that takes longer than this is left to the progress thread, which needs about as long to
 * begin, when the program has other things to do. */
#define HAND_OVER_NS (30 * UTIL_NS_PER_US)

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void acks_ride(struct rnic_rd_peer *peer)
{
	for (int l = 0; l < WIRE_RD_LANES; l++)
		if (!peer->lane[l].rx.beyond)
			peer->owe[l] = false;
	if (peer->owe[0] || peer->owe[1])
		return;
	peer->unacked = 0;
	/* It stands for what is owed through shared memory, too. */
	if (!rnic_rd_shm_owes(peer))
		rnic_due_rides(rnic_rd_due_of(peer));
}

/* Packets of one path, of about so many bytes. Behind the others if there is more: then it has a
 * place in the queue afterwards. */
static uint32_t go(struct rnic_rd_path *path, uint32_t bytes, uint64_t now)
{
	uint32_t sent = 0;
	int n = 0;

	list_del(&path->turn);
	while (sent < bytes && rnic_rd_io_ready(path->sock)) {
		n = rnic_rd_send_one(path, now);
		if (n <= 0)
			break;
		sent += (uint32_t)n;
	}
	if (n < 0 || sent >= bytes)
		list_add_tail(&path->turn, &path->rd->turns);
	if (!sent)
		return 0;
	path->rd->tx_now = now;
	rnic_rd_io_flush(path);
	acks_ride(path->peer);
	rnic_rd_path_arm(path);
	return sent;
}

/* Requests do not wait behind the data of other paths. */
static void brief(struct rnic_rd_path *path, uint64_t now)
{
	int sent = 0;

	while (rnic_rd_io_ready(path->sock) && rnic_rd_send_brief(path, now) > 0)
		sent++;
	if (!sent)
		return;
	path->rd->tx_now = now;
	rnic_rd_io_flush(path);
	acks_ride(path->peer);
	rnic_rd_path_arm(path);
}

static void serve(struct rnic_rd *rd, uint64_t now)
{
	uint32_t queued = rnic_rd_io_queued(rd);
	uint32_t room = rd_egress_room(&rd->egress, queued, now);
	uint32_t left = least(room, ONE_GO), n;
	uint64_t next;
	struct rnic_rd_path *path;
	struct list_head work;

	/* Who has more afterwards is behind the others. */
	list_init(&work);
	list_splice_tail(&rd->turns, &work);
	while (left && (path = list_first(&work, struct rnic_rd_path, turn))) {
		bool alone = list_empty(&rd->turns) && work.prev == &path->turn;

		n = go(path, alone ? left : least(left, TURN), now);
		left -= least(n, left);
		queued += n;
	}
	list_splice_tail(&rd->turns, &work);
	list_splice_tail(&work, &rd->turns);
	if (list_empty(&rd->turns))
		return;
	if (left)
		next = now + NO_MEMORY_NS;
	else
		next = room > ONE_GO ? now : rd_egress_when(&rd->egress, queued, now);
	/* Without memory for the timer the next acknowledgement has to do. */
	rnic_timer_arm(rd->e, &rd->turn_timer, next);
}

void rnic_rd_turn_fire(struct rnic_timer *t, uint64_t now)
{
	serve(container_of(t, struct rnic_rd, turn_timer), now);
}

/* Bytes that could go now, those of the first message of each lane. */
static uint32_t pending(const struct rnic_rd_path *path)
{
	uint64_t bytes = 0;
	uint32_t room = rd_cc_room(&path->p.cc);

	for (int l = 0; l < WIRE_RD_LANES; l++) {
		const struct rnic_rd_msg *m = list_first(&path->tx[l], struct rnic_rd_msg, tx);

		bytes += m ? (uint64_t)(m->n - m->sent) * m->seg : 0;
	}
	return bytes < room ? (uint32_t)bytes : room;
}

/* Whether sending what could go now would hold up a program that has other things to do. */
static bool hand_over(const struct rnic_rd *rd, uint32_t bytes)
{
	return rd->posting && (uint64_t)bytes / 1024 * rd->kb_ns > HAND_OVER_NS &&
	       rnic_engine_computes(rd->e);
}

void rnic_rd_turn(struct rnic_rd_path *path, uint64_t now)
{
	struct rnic_rd *rd = path->rd;
	uint32_t bytes;

	if (path->state != RNIC_RD_PATH_UP)
		return;
	bytes = pending(path);
	if (list_empty(&path->turn) && (uint64_t)path->p.cc.flight + bytes <= SHORT) {
		go(path, SHORT, now);
		if (list_empty(&path->turn))
			return; /* that was all */
	} else {
		brief(path, now);
		if (list_empty(&path->turn))
			list_add_tail(&path->turn, &rd->turns);
	}
	if (!hand_over(rd, bytes)) {
		serve(rd, now);
		return;
	}
	/* The timer may be set for another one, which has to wait for longer. */
	if (rd->turn_timer.slot >= 0 && rd->turn_timer.at <= now)
		return;
	if (!rnic_timer_arm(rd->e, &rd->turn_timer, now))
		rnic_engine_unpark(rd->e);
}

void rnic_rd_pump(struct rnic_rd_peer *peer)
{
	struct rnic_rd_path *path;
	uint64_t now = 0;

	if (!peer->remote_id)
		return;
	if (peer->shm)
		rnic_rd_shm_pump(peer->shm);
	if (!peer->lane)
		return;
	list_for_each (path, &peer->paths, link) {
		if (!rd_path_lost(&path->p) && list_empty(&path->tx[0]) && list_empty(&path->tx[1]))
			continue;
		if (!now)
			now = util_now_ns();
		if (!peer->waiting)
			peer->waiting = now;
		rnic_rd_turn(path, now);
	}
}
