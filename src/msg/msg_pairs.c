#include "msg_pairs.h"

#include <arpa/inet.h>
#include <stdbool.h>

static bool is_loopback(uint32_t ip)
{
	return ntohl(ip) >> 24 == 127;
}

static bool may_be(const struct msg_own *own, uint32_t n_own, uint32_t ip)
{
	uint32_t top = ntohl(ip) >> 24;

	for (uint32_t i = 0; i < n_own; i++)
		if (own[i].ip == ip)
			return false;
	/* from 224 on: multicast, and what was kept for later */
	return top && top < 224 && (!is_loopback(ip) || is_loopback(own[0].ip));
}

static bool is_in(const struct msg_own *own, uint32_t ip)
{
	return !((own->ip ^ ip) & own->mask);
}

/* Our addresses in its subnet, as bits. */
static uint32_t beside(const struct msg_own *own, uint32_t n_own, uint32_t ip)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < n_own; i++)
		bits |= is_in(&own[i], ip) ? 1u << i : 0;
	return bits;
}

/* Number k of those, or of all if there is none, and so on from the beginning. */
static uint32_t pick(uint32_t n_own, uint32_t bits, uint32_t k)
{
	bits = bits ? bits : (1u << n_own) - 1;
	for (k %= (uint32_t)__builtin_popcount(bits); k; k--)
		bits &= bits - 1;
	return (uint32_t)__builtin_ctz(bits);
}

uint32_t msg_pairs(const struct msg_own *own, uint32_t n_own, uint32_t first, const uint32_t *peer,
		   uint32_t n_peer, struct msg_pair out[MSG_ADDRS])
{
	uint32_t near[MSG_ADDRS] = {beside(own, n_own, first)}, n = 1;

	out[0] = (struct msg_pair){pick(n_own, near[0], 0), first};
	for (uint32_t i = 0; i < n_peer && n < MSG_ADDRS; i++) {
		uint32_t turn = 0;
		bool known = !may_be(own, n_own, peer[i]);

		near[n] = beside(own, n_own, peer[i]);
		for (uint32_t k = 0; k < n; k++) {
			known |= out[k].peer == peer[i];
			turn += near[k] == near[n];
		}
		if (known)
			continue;
		out[n] = (struct msg_pair){pick(n_own, near[n], turn), peer[i]};
		n++;
	}
	return n;
}
