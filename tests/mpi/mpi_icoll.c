/* All collectives, non-blocking; and many of them at once, with messages in between. */
#include "mpi_coll.h"

#include <stdlib.h>

enum { N = 12, LEN = 20000 };

/* Several collectives are under way on one communicator and on its copy, and are waited for in
 * another order than that of their beginning. */
static void at_once(void)
{
	uint8_t *bcast[N], *gather[N];
	long sum[N], one[N];
	MPI_Request req[3 * N];
	MPI_Comm comm[2] = {MPI_COMM_WORLD};

	MPI_Comm_dup(MPI_COMM_WORLD, &comm[1]);
	for (int i = 0; i < N; i++) {
		size_t block = LEN / 16;

		bcast[i] = mt_alloc(LEN);
		gather[i] = mt_alloc(block * (size_t)mt.size);
		if (mt.rank == i % mt.size)
			mt_fill(bcast[i], LEN, mt_key(i % mt.size, -1, i));
		mt_fill(gather[i] + block * (size_t)mt.rank, block, mt_key(mt.rank, -2, i));
		one[i] = mt.rank + i;
		MPI_Ibcast(bcast[i], LEN, MPI_BYTE, i % mt.size, comm[i % 2], &req[3 * i]);
		MPI_Iallreduce(&one[i], &sum[i], 1, MPI_LONG, MPI_SUM, comm[i / 2 % 2],
			       &req[3 * i + 1]);
		MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gather[i], (int)block, MPI_BYTE,
			       comm[i % 2], &req[3 * i + 2]);
	}
	for (int k = 3 * N - 1; k >= 2 * N; k--)
		MPI_Wait(&req[k], MPI_STATUS_IGNORE);
	MPI_Waitall(2 * N, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++) {
		size_t block = LEN / 16;

		mt_expect(bcast[i], LEN, mt_key(i % mt.size, -1, i), "ibcast %d", i);
		for (int r = 0; r < mt.size; r++)
			mt_expect(gather[i] + block * (size_t)r, block, mt_key(r, -2, i),
				  "iallgather %d of %d", i, r);
		CHECK(sum[i] == (long)mt.size * (mt.size - 1) / 2 + (long)i * mt.size,
		      "iallreduce %d: %ld", i, sum[i]);
		mt_free(bcast[i]);
		mt_free(gather[i]);
	}
	MPI_Comm_free(&comm[1]);
}

/* Messages with wildcards while collectives are under way: neither sees the other's. */
static void with_messages(void)
{
	int next = (mt.rank + 1) % mt.size, prev = (mt.rank + mt.size - 1) % mt.size;

	for (int i = 0; i < 30; i++) {
		size_t len = i % 3 ? 1000 : 70000;
		uint8_t *out = mt_alloc(len), *in = mt_alloc(len), *all = mt_alloc(5000);
		MPI_Request req[3];
		MPI_Status st[3];

		mt_fill(out, len, mt_key(mt.rank, next, i));
		if (mt.rank == 0)
			mt_fill(all, 5000, mt_key(0, -1, i));
		MPI_Irecv(in, (int)len, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
			  &req[0]);
		MPI_Ibcast(all, 5000, MPI_BYTE, 0, MPI_COMM_WORLD, &req[1]);
		MPI_Isend(out, (int)len, MPI_BYTE, next, i, MPI_COMM_WORLD, &req[2]);
		MPI_Waitall(3, req, st);
		mt_expect_status(&st[0], prev, i, len, "beside a collective");
		mt_expect(in, len, mt_key(prev, mt.rank, i), "beside a collective");
		mt_expect(all, 5000, mt_key(0, -1, i), "bcast beside a message");
		mt_free(out);
		mt_free(in);
		mt_free(all);
	}
}

/* An Ibarrier ends an unknown number of messages: the sparse exchange of Hoefler, Siebert and
 * Lumsdaine. Everybody sends to a few ranks that only it knows, and stops when nobody has
 * anything on the way. */
static void sparse(void)
{
	struct util_rand r = mt_rand_own(1);
	int done = 0, in_barrier = 0, got = 0, sent = (int)util_rand_below(&r, 8), all_sent = 0,
	    all_got = 0;
	int out[8];
	MPI_Request req[8], barrier;

	for (int i = 0; i < sent; i++) {
		out[i] = mt.rank * 1000 + i;
		MPI_Issend(&out[i], 1, MPI_INT, (int)util_rand_below(&r, (uint64_t)mt.size), 44,
			   MPI_COMM_WORLD, &req[i]);
	}
	for (; !done; mt_relax()) {
		MPI_Status st;
		int flag, x = -1;

		MPI_Iprobe(MPI_ANY_SOURCE, 44, MPI_COMM_WORLD, &flag, &st);
		if (flag) {
			MPI_Recv(&x, 1, MPI_INT, st.MPI_SOURCE, 44, MPI_COMM_WORLD, &st);
			CHECK(x / 1000 == st.MPI_SOURCE, "%d from %d", x, st.MPI_SOURCE);
			got++;
		}
		if (in_barrier) {
			MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
			continue;
		}
		MPI_Testall(sent, req, &flag, MPI_STATUSES_IGNORE);
		if (flag) {
			MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
			in_barrier = 1;
		}
	}
	MPI_Allreduce(&sent, &all_sent, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&got, &all_got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK(all_sent == all_got, "%d sent, %d received before the barrier ended", all_sent,
	      all_got);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	coll_everywhere(1);
	mt_part("many at once", at_once);
	mt_part("beside messages", with_messages);
	mt_part("sparse exchange", sparse);
	return mt_done();
}
