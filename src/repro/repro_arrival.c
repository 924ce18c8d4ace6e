/* Qian and Afsahi, Process Arrival Pattern and Shared Memory Aware Alltoall on InfiniBand. */
#include "repro.h"

#include <math.h>

#define RUN     "WEFT_COLL=auto weft run --coll -n "
#define ARRIVAL " weft-mpi-perf.openmpi arrival --own -i {40|300} -w 2 -T {8|40} --json "

static const struct repro_take own_by_size[] = {
	{.series = "MIF 1", .rows = "rows", .where = "by=own,mif=1", .x = "size", .y = "mean_us"},
	{.series = "MIF 32", .rows = "rows", .where = "by=own,mif=32", .x = "size", .y = "mean_us"},
	{.series = "MIF 512",
	 .rows = "rows",
	 .where = "by=own,mif=512",
	 .x = "size",
	 .y = "mean_us"},
	{0},
};
static const struct repro_take both[] = {
	{.series = "aware", .rows = "rows", .where = "by=mpi", .x = "size", .y = "mean_us"},
	{.series = "the MPI's own", .rows = "rows", .where = "by=own", .x = "size", .y = "mean_us"},
	{0},
};
static const struct repro_take by_ranks[] = {
	{.series = "aware", .rows = "rows", .where = "by=mpi", .y = "mean_us"},
	{.series = "the MPI's own", .rows = "rows", .where = "by=own", .y = "mean_us"},
	{0},
};
static const struct repro_take fft_takes[] = {
	{.series = "aware", .where = "1=MPI_Alltoall", .y = "2"},
	{.series = "the MPI's own", .where = "1=PMPI_Alltoall", .y = "2"},
	{0},
};

static const struct repro_step fig1_steps[] = {
	{"", RUN "16" ARRIVAL "-m 4,8K --mif 1,32,512", own_by_size}, {0}};
static const struct repro_step fig2_steps[] = {
	{"MIF 32, ", RUN "16" ARRIVAL "-m 4,256,8K --mif 32", both},
	{"MIF 512, ", RUN "16" ARRIVAL "-m 4,256,8K --mif 512", both},
	{0},
};
static const struct repro_step fig3_steps[] = {
	{"", RUN "4" ARRIVAL "-m 8K --mif 32", by_ranks, 4},
	{"", RUN "8" ARRIVAL "-m 8K --mif 32", by_ranks, 8},
	{"", RUN "16" ARRIVAL "-m 8K --mif 32", by_ranks, 16},
	{0},
};
static const struct repro_step fig4_steps[] = {
	{"25 % late, ", RUN "16" ARRIVAL "-m 4,8K --mif 128 --late 25", both},
	{"75 % late, ", RUN "16" ARRIVAL "-m 4,8K --mif 128 --late 75", both},
	{0},
};
#define FFT " \"$WEFT_BUILD_BIN/../tests/coll/openmpi/fft\" -c {S|W} -r {3|9} --own --csv"
static const struct repro_step table1_steps[] = {
	{"", RUN "4" FFT, fft_takes, 4, true},
	{"", RUN "8" FFT, fft_takes, 8, true},
	{"", RUN "16" FFT, fft_takes, 16, true},
	{0},
};

#define NEEDS (REPRO_OPENMPI | REPRO_COLL | REPRO_PROVIDER)
static const struct repro_experiment imbalance = {.name = "arrival-imbalance",
						  .steps = fig1_steps,
						  .needs = NEEDS,
						  .rounds = {2, 7},
						  .seconds = {24, 300},
						  .x = "message, bytes",
						  .y = "mean time of a call, us",
						  .log_x = true,
						  .log_y = true};
static const struct repro_experiment random_arrival = {.name = "arrival-random",
						       .steps = fig2_steps,
						       .needs = NEEDS,
						       .rounds = {2, 7},
						       .seconds = {40, 600},
						       .x = "message, bytes",
						       .y = "mean time of a call, us",
						       .log_x = true,
						       .log_y = true};
static const struct repro_experiment scaling = {.name = "arrival-scaling",
						.steps = fig3_steps,
						.needs = NEEDS,
						.rounds = {2, 7},
						.seconds = {30, 500},
						.x = "processes",
						.y = "mean time of a call, us"};
static const struct repro_experiment late = {.name = "arrival-late",
					     .steps = fig4_steps,
					     .needs = NEEDS,
					     .rounds = {2, 7},
					     .seconds = {36, 600},
					     .x = "message, bytes",
					     .y = "mean time of a call, us",
					     .log_x = true};
static const struct repro_experiment transform = {.name = "arrival-transform",
						  .steps = table1_steps,
						  .needs = NEEDS | REPRO_FFT,
						  .rounds = {2, 7},
						  .seconds = {20, 200},
						  .x = "processes",
						  .y = "seconds"};

static const struct repro_claim fig1[] = {
	{"A call takes longer the further apart processes arrive, 8 KB", "greatly affected",
	 "times, MIF 512 to 1", REPRO_RATIO, "MIF 512", "MIF 1", 8192, 8192, REPRO_AT_LEAST, NAN, 0,
	 1},
	{0},
};
#define SPEED(text, mif, size, number)                                                             \
	{                                                                                          \
		text, #number " times", "times", REPRO_RATIO, "MIF " mif ", the MPI's own",        \
			"MIF " mif ", aware", size, size, REPRO_AT_LEAST, number, 0, 1             \
	}
static const struct repro_claim fig2[] = {
	SPEED("MIF 32, 8 KB: as fast as the native one", "32", 8192, 3.1),
	SPEED("MIF 32, 4 bytes, with shared memory", "32", 4, 3.5),
	SPEED("MIF 512, 8 KB", "512", 8192, 1.5),
	SPEED("MIF 512, 4 bytes, with shared memory", "512", 4, 1.2),
	{0},
};
static const struct repro_claim fig3[] = {
	{"The aware one is always superior, 4 to 16 processes", "always",
	 "of all numbers of processes", REPRO_BELOW, "aware", "the MPI's own", 0, 0, REPRO_ABOUT, 1,
	 0, 0.5},
	{0},
};
static const struct repro_claim fig4[] = {
	{"25 % late: always better", "always", "of all sizes", REPRO_BELOW, "25 % late, aware",
	 "25 % late, the MPI's own", 0, 0, REPRO_ABOUT, 1, 0, 0.5},
	{"75 % late: the one with shared memory is always better than the native one", "always",
	 "of all sizes", REPRO_BELOW, "75 % late, aware", "75 % late, the MPI's own", 0, 0,
	 REPRO_ABOUT, 1, 0, 0.5},
	{0},
};
static const struct repro_claim table1[] = {
	{"4 processes: speedup over the native one", "1.01 (class C) to 1.08 (class B)", "times",
	 REPRO_RATIO, "the MPI's own", "aware", 4, 4, REPRO_AT_LEAST, 1.01, 0, 1},
	{"8 processes", "1.04 (class C) to 1.10 (class B)", "times", REPRO_RATIO, "the MPI's own",
	 "aware", 8, 8, REPRO_AT_LEAST, 1.04, 0, 1},
	{"16 processes", "1.14 (class B) to 1.17 (class C)", "times", REPRO_RATIO, "the MPI's own",
	 "aware", 16, 16, REPRO_AT_LEAST, 1.14, 0, 1},
	{0},
};

#define HERE                                                                                       \
	"one host, processes share its cores and sleep until they arrive; libweft-coll beside "    \
	"Open "                                                                                    \
	"MPI's own, call by call in the same processes; means include the wait for the last one"

const struct repro_figure repro_arrival[] = {
	{"arrival/fig1", "MPI_Alltoall of the MPI's own, the further apart processes arrive.",
	 &imbalance, NULL, "Open MPI, not MVAPICH; one host", fig1},
	{"arrival/fig2", "MPI_Alltoall of 16 processes that arrive at random.", &random_arrival,
	 NULL, HERE, fig2},
	{"arrival/fig3", "The same with 4, 8 and 16 processes.", &scaling, NULL, HERE, fig3},
	{"arrival/fig4", "The same with a quarter, and three quarters, of the processes late.",
	 &late, NULL, HERE, fig4},
	{"arrival/table1", "A Fourier transform, which is mostly MPI_Alltoall.", &transform, NULL,
	 "examples/fft.c, which does what NAS FT does, on smaller grids (class S or W)", table1},
	{0},
};
