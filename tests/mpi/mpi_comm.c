/* Communicators: made in all ways, apart from each other, many of them, and gone again. */
#include "mpi_test.h"

#include <stdlib.h>
#include <string.h>

static const size_t LENS[] = {0, 100, 8193, 70000};
enum { N_LENS = sizeof(LENS) / sizeof(*LENS) };

/* A ring, a wildcard and a sum: enough to see that it works and is nobody else's. */
static void use(MPI_Comm comm, int step)
{
	int rank, size, sum = -1;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (int i = 0; i < N_LENS; i++) {
		int to = (rank + 1) % size, from = (rank + size - 1) % size;
		size_t len = LENS[i];
		uint8_t *out = mt_alloc(len), *in = mt_alloc(len);
		MPI_Status st;

		mt_fill(out, len, mt_key(rank, to, step + i));
		MPI_Sendrecv(out, (int)len, MPI_BYTE, to, i, in, (int)len, MPI_BYTE,
			     i % 2 ? from : MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &st);
		mt_expect_status(&st, from, i, len, "ring");
		mt_expect(in, len, mt_key(from, rank, step + i), "ring of %d", size);
		mt_free(out);
		mt_free(in);
		/* Or the next round's message could be what any tag finds. */
		MPI_Barrier(comm);
	}
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
	CHECK(sum == size * (size - 1) / 2, "sum of ranks is %d", sum);
}

static void dup(void)
{
	MPI_Comm a, b, c;
	MPI_Request req;
	int result = -1;

	MPI_Comm_dup(MPI_COMM_WORLD, &a);
	MPI_Comm_dup(a, &b);
	MPI_Comm_idup(b, &c, &req);
	use(a, 100);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	MPI_Comm_free(&a); /* its copies live on */
	MPI_Comm_compare(b, c, &result);
	CHECK(result == MPI_CONGRUENT, "a copy compares as %d", result);
	use(c, 200);
	use(b, 300);
	MPI_Comm_free(&b);
	MPI_Comm_free(&c);
}

static void split(void)
{
	MPI_Comm comm;
	int rank, size;

	for (int colours = 1; colours <= 3; colours++) {
		int colour = mt.rank % colours;

		MPI_Comm_split(MPI_COMM_WORLD, colour, -mt.rank, &comm);
		MPI_Comm_rank(comm, &rank);
		MPI_Comm_size(comm, &size);
		CHECK(size == (mt.size - colour + colours - 1) / colours, "%d in colour %d", size,
		      colour);
		CHECK(rank == size - 1 - mt.rank / colours, "rank %d in the reversed order", rank);
		use(comm, colour * 1000);
		MPI_Comm_free(&comm);
	}
	/* Rank 0 is in none. */
	MPI_Comm_split(MPI_COMM_WORLD, mt.rank ? 1 : MPI_UNDEFINED, 0, &comm);
	CHECK((comm == MPI_COMM_NULL) == (mt.rank == 0), "in a communicator that is not ours");
	if (comm != MPI_COMM_NULL) {
		use(comm, 5000);
		MPI_Comm_free(&comm);
	}
}

/* Disjoint groups make theirs at the same time, without the others. */
static void create(void)
{
	MPI_Group world, group;
	MPI_Comm comm;
	int half = mt.size / 2;
	int range[1][3] = {{mt.rank < half ? 0 : half, mt.rank < half ? half - 1 : mt.size - 1, 1}};

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_range_incl(world, 1, range, &group);
	MPI_Comm_create_group(MPI_COMM_WORLD, group, 77, &comm);
	use(comm, 100);
	MPI_Comm_free(&comm);
	MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
	use(comm, 200);
	MPI_Comm_free(&comm);
	MPI_Group_free(&group);
	MPI_Group_free(&world);
}

/* Messages go to ranks of the other group; merged, it is an ordinary one. */
static void intercomm(void)
{
	int side = mt.rank % 2, rank, remote, low = -1;
	MPI_Comm local, inter, merged;

	MPI_Comm_split(MPI_COMM_WORLD, side, mt.rank, &local);
	MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - side, 7, &inter);
	MPI_Comm_rank(inter, &rank);
	MPI_Comm_remote_size(inter, &remote);
	for (int i = 0; i < N_LENS; i++) {
		size_t len = LENS[i];
		uint8_t *out = mt_alloc(len), *in = mt_alloc(len);
		MPI_Request *req = mt_alloc((size_t)remote * sizeof(*req));

		/* The same to all of the others. */
		mt_fill(out, len, mt_key(mt.rank, -1, i));
		for (int r = 0; r < remote; r++)
			MPI_Isend(out, (int)len, MPI_BYTE, r, i, inter, &req[r]);
		/* From the last by name, from the others as they come. */
		for (int r = 0; r < remote; r++) {
			MPI_Status st;

			MPI_Recv(in, (int)len, MPI_BYTE, r ? MPI_ANY_SOURCE : remote - 1, i, inter,
				 &st);
			CHECK(r == 0 || st.MPI_SOURCE != remote - 1, "a message came twice");
			mt_expect(in, len, mt_key(st.MPI_SOURCE * 2 + 1 - side, -1, i),
				  "from rank %d of the other group", st.MPI_SOURCE);
		}
		MPI_Waitall(remote, req, MPI_STATUSES_IGNORE);
		mt_free(out);
		mt_free(in);
		mt_free(req);
		MPI_Barrier(inter);
	}
	MPI_Intercomm_merge(inter, side, &merged);
	MPI_Comm_rank(merged, &low);
	CHECK(side == 0 ? low == rank : low == remote + rank, "rank %d in the merged one", low);
	use(merged, 400);
	MPI_Comm_free(&merged);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&local);
}

/* Receives with wildcards on several communicators: each takes what is its own, although
 * messages come in the opposite order. */
static void apart(void)
{
	enum { N = 6, LEN = 20000 };
	MPI_Comm comm[N];
	MPI_Request recv[N], send[N];
	uint8_t *out[N], *in[N];
	int to = (mt.rank + 1) % mt.size, from = (mt.rank + mt.size - 1) % mt.size;
	MPI_Status st;

	for (int i = 0; i < N; i++) {
		size_t len = i % 2 ? LEN : 50;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
		in[i] = mt_alloc(LEN);
		out[i] = mt_alloc(LEN);
		mt_fill(out[i], len, mt_key(mt.rank, to, i));
		MPI_Irecv(in[i], LEN, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm[i], &recv[i]);
	}
	for (int i = N - 1; i >= 0; i--)
		MPI_Isend(out[i], i % 2 ? LEN : 50, MPI_BYTE, to, 5, comm[i], &send[i]);
	for (int i = 0; i < N; i++) {
		size_t len = i % 2 ? LEN : 50;

		MPI_Wait(&recv[i], &st);
		mt_expect_status(&st, from, 5, len, "communicator of its own");
		mt_expect(in[i], len, mt_key(from, mt.rank, i), "communicator %d", i);
	}
	MPI_Waitall(N, send, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++) {
		mt_free(in[i]);
		mt_free(out[i]);
		MPI_Comm_free(&comm[i]);
	}
}

/* Hundreds one after the other, with numbers that are used again; and many at once. */
static void many(void)
{
	enum { AT_ONCE = 30 };
	MPI_Comm comm[AT_ONCE], one;
	int sum, x = mt.rank + 1;

	for (int i = 0; i < 150; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &one);
		sum = -1;
		MPI_Sendrecv(&x, 1, MPI_INT, (mt.rank + 1) % mt.size, 0, &sum, 1, MPI_INT,
			     MPI_ANY_SOURCE, 0, one, MPI_STATUS_IGNORE);
		CHECK(sum == (mt.rank + mt.size - 1) % mt.size + 1, "%d in communicator %d", sum,
		      i);
		MPI_Comm_free(&one);
	}
	for (int i = 0; i < AT_ONCE; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
	for (int i = 0; i < AT_ONCE; i++) {
		MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, comm[i]);
		CHECK(sum == mt.size * (mt.size + 1) / 2, "sum %d in communicator %d", sum, i);
	}
	for (int i = 0; i < AT_ONCE; i++)
		MPI_Comm_free(&comm[i]);
}

/* Freed while messages are under way: they arrive all the same. */
static void freed_early(void)
{
	for (int i = 0; i < 8; i++) {
		size_t len = i % 2 ? 100000 : 100;
		int to = (mt.rank + 1) % mt.size, from = (mt.rank + mt.size - 1) % mt.size;
		uint8_t *out = mt_alloc(len), *in = mt_alloc(len);
		MPI_Request req[2];
		MPI_Comm comm;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		mt_fill(out, len, mt_key(mt.rank, to, i));
		MPI_Irecv(in, (int)len, MPI_BYTE, from, 0, comm, &req[0]);
		MPI_Isend(out, (int)len, MPI_BYTE, to, 0, comm, &req[1]);
		MPI_Comm_free(&comm);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		mt_expect(in, len, mt_key(from, mt.rank, i), "after free");
		mt_free(out);
		mt_free(in);
	}
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	mt_part("dup", dup);
	mt_part("split", split);
	mt_part("create and create_group", create);
	mt_part("intercommunicator", intercomm);
	mt_part("apart", apart);
	mt_part("many", many);
	mt_part("freed early", freed_early);
	return mt_done();
}
