/* Rashti, Improving message-passing performance and scalability in high-performance clusters.
 * Published values are those of the text; the figures' points are not in it. */
#include "repro_thesis_how.h"

#include <math.h>

#define DRAWING "a drawing: nothing in it is measured"
#define NO_NAS                                                                                     \
	"applications (NAS Parallel Benchmarks, RADIX, SMG2000, AMG2006, MILC) are not installed"
#define SETTING "a setting of MPI libraries of 2010, not a measurement"
#define SOFTWARE                                                                                   \
	"a software RNIC between two hosts of a lab, not NetEffect, Mellanox or Myricom cards"

static const struct repro_claim f31[] = {
	{"Latency of a short message, iWARP", "6.6 us", "us", REPRO_VALUE, "rc", NULL, 8, 0,
	 REPRO_AT_MOST, 6.6, 0, NAN},
	{"Within a host it is not very different from between hosts", "not very different",
	 "of that between hosts", REPRO_RATIO, "one host, rc", "rc", 8, 8, REPRO_ABOUT, 1, 0.25,
	 NAN},
	{0},
};
static const struct repro_claim f32[] = {
	{"At 4 KB 90 % of the bandwidth there is are reached", "90 %", "of that at 1 MB",
	 REPRO_RATIO, "rc-write", "rc-write", 4096, 1048576, REPRO_AT_LEAST, 0.9, 0, NAN},
	{0},
};
static const struct repro_claim f33[] = {
	{"MPI takes little longer than the user level, 8 bytes",
	 "about 1.06 (7 against 6.6 us, iWARP), 1.25 (1.5 against 1.2 us, InfiniBand)", "times",
	 REPRO_RATIO, "datagrams", "verbs, rd", 8, 8, REPRO_AT_MOST, 1.25, 0, NAN},
	{0},
};
static const struct repro_claim f34[] = {
	{"Within a host messages bypass the network, 8 bytes", "very low", "of that between hosts",
	 REPRO_RATIO, "one host", "datagrams", 8, 8, REPRO_AT_MOST, NAN, 0, 1},
	{0},
};
static const struct repro_claim f35[] = {
	{"Both ways together carry about twice as much as one, 2 MB",
	 "2.1 (2300 against 1100 MB/s, iWARP)", "times", REPRO_RATIO, "both ways, datagrams",
	 "one way", 2097152, 2097152, REPRO_AT_LEAST, 2.1, 0.1, 1},
	{0},
};
static const struct repro_claim f36[] = {
	{"Short messages: the latency by the number of connections falls up to 16", "decreases",
	 "of one connection, 8 bytes", REPRO_RATIO, "latency, 8", "latency, 8", 16, 1,
	 REPRO_AT_MOST, NAN, 0, 1},
	{"Above 2 KB it stays: connections are served one after the other", "relatively fixed",
	 "of one connection, 64 KB", REPRO_RATIO, "latency, 64K", "latency, 64K", 16, 1,
	 REPRO_ABOUT, 1, 0.25, NAN},
	{0},
};
static const struct repro_claim f37[] = {
	{"Throughput is sustained over many connections, 64 KB", "a high level",
	 "of one connection, at 64", REPRO_RATIO, "throughput, 64K", "throughput, 64K", 64, 1,
	 REPRO_AT_LEAST, 0.9, 0, NAN},
	{0},
};
static const struct repro_claim f38[] = {
	{"Latency by the number of pairs falls: four do not take four times as long", "decreasing",
	 "times that of one pair, 8 bytes", REPRO_RATIO, "8", "8", 4, 1, REPRO_AT_MOST, NAN, 0, 4},
	{0},
};
static const struct repro_claim f39[] = {
	{"What all pairs carry grows with their number, 64 KB", "increases very fast",
	 "times that of one pair, four pairs", REPRO_RATIO, "64K", "64K", 4, 1, REPRO_AT_LEAST, NAN,
	 0, 1},
	{0},
};
static const struct repro_claim f311[] = {
	{"Latency of 1 MB with a cache of registrations", "considerably lower", "% lower",
	 REPRO_GAIN, "cached: again", "not: again", 1048576, 1048576, REPRO_AT_LEAST, NAN, 0, 0},
	{0},
};
static const struct repro_claim f310[] = {
	{"Registering costs more than deregistering, 1 MB", "costlier", "times", REPRO_RATIO,
	 "register", "deregister", 1048576, 1048576, REPRO_AT_LEAST, NAN, 0, 1},
	{0},
};
static const struct repro_claim f312[] = {
	{"Up to 512 bytes, buffers that are not used again cost less than 20 %", "less than 20 %",
	 "times", REPRO_RATIO, "never again", "always", 512, 512, REPRO_AT_MOST, 1.2, 0, NAN},
	{"Long messages suffer", "2.8 (iWARP, 32 KB), 6.7 (InfiniBand, 16 KB)",
	 "times, the worst size", REPRO_MOST, "never again", "always", 0, 0, REPRO_AT_LEAST, 2.8, 0,
	 1},
	{0},
};
static const struct repro_claim f314[] = {
	{"A receiver of a long message hides little, 1 MB", "very low", "%", REPRO_VALUE,
	 "before: receiver, receiver early", NULL, 1048576, 0, REPRO_AT_MOST, 10, 0, NAN},
	{0},
};
static const struct repro_claim f315[] = {
	{"All of a long message's latency remains after the delay, receiver", "all", "%",
	 REPRO_VALUE, "before: receiver, receiver early", NULL, 2, 0, REPRO_ABOUT, 100, 0.25, NAN},
	{0},
};
static const struct repro_claim f413[] = {
	{"Receiver early: overlap of the receiver before", "less than 10 %", "%", REPRO_VALUE,
	 "before: receiver, receiver early", NULL, 4194304, 0, REPRO_AT_MOST, 10, 0, NAN},
	{"... and with the new protocol", "more than 92 %", "%", REPRO_VALUE,
	 "new: receiver, receiver early", NULL, 4194304, 0, REPRO_AT_LEAST, 92, 0, 10},
	{"Sender early: overlap of the receiver with the new protocol", "more than 80 %", "%",
	 REPRO_VALUE, "new: receiver, sender early", NULL, 4194304, 0, REPRO_AT_LEAST, 80, 0, 10},
	{0},
};
static const struct repro_claim f414[] = {
	{"Receiver early, new: nothing is left after the delay", "complete progress", "%",
	 REPRO_VALUE, "new: receiver, receiver early", NULL, 2, 0, REPRO_AT_MOST, 10, 0, 100},
	{"Sender, receiver early, new: 4 to 15 % are left", "4 to 15 %", "%", REPRO_VALUE,
	 "new: sender, receiver early", NULL, 2, 0, REPRO_AT_MOST, 15, 0, 100},
	{0},
};
static const struct repro_claim f416[] = {
	{"Model 1: the best improvement of an iteration", "32 %, at 0.8", "% at 0.8", REPRO_GAIN,
	 "model 1, new", "model 1, before", 0.8, 0.8, REPRO_AT_LEAST, 32, 0, 0},
	{"Model 2: the best improvement", "20 %, at 0.5", "% at 0.5", REPRO_GAIN, "model 2, new",
	 "model 2, before", 0.5, 0.5, REPRO_AT_LEAST, 20, 0, 0},
	{0},
};
static const struct repro_claim f419[] = {
	{"Overhead for short messages", "less than 1 %", "times, 512 bytes", REPRO_RATIO,
	 "speculating", "not", 512, 512, REPRO_AT_MOST, 1.01, 0, NAN},
	{"Overhead for long ones, without adaptation", "less than 3 %", "times, 256 KB",
	 REPRO_RATIO, "speculating", "not", 262144, 262144, REPRO_AT_MOST, 1.03, 0, NAN},
	{0},
};
static const struct repro_claim f51[] = {
	{"One copy, of the latency: what can be gained at most", "up to 20 %",
	 "of the latency, 8 KB", REPRO_RATIO, "the copy itself", "copied", 8192, 8192,
	 REPRO_AT_LEAST, 0.2, 0, 0},
	{0},
};
static const struct repro_claim f54[] = {
	{"Looking in a hash table takes less than in a tree, 10,000 buffers", "grows very slowly",
	 "of the tree's", REPRO_RATIO, "hash", "tree", 10000, 10000, REPRO_AT_MOST, NAN, 0, 1},
	{0},
};
static const struct repro_claim f55[] = {
	{"Latency at 8 KB without the copy", "14 % less", "%", REPRO_GAIN, "not copied", "copied",
	 8192, 8192, REPRO_AT_LEAST, 14, 0, 0},
	{0},
};
static const struct repro_claim f56[] = {
	{"A spectrum of buffers, 8 KB", "12.7 % less", "%", REPRO_GAIN, "on", "off", 8192, 8192,
	 REPRO_AT_LEAST, 12.7, 0, 0},
	{0},
};
static const struct repro_claim f57[] = {
	{"MPI_Put of 8 KB", "around 20 % less", "%", REPRO_GAIN, "put, on", "put, off", 8192, 8192,
	 REPRO_AT_LEAST, 20, 0, 0},
	{"MPI_Get gains from 3 KB on", "less than MPI_Put", "%, 8 KB", REPRO_GAIN, "get, on",
	 "get, off", 8192, 8192, REPRO_AT_LEAST, NAN, 0, 0},
	{0},
};
static const struct repro_claim f63[] = {
	{"Datagrams are faster than connections in most cases", "most cases", "of all sizes",
	 REPRO_BELOW, "ud", "rc", 0, 0, REPRO_AT_LEAST, 0.5, 0, 0.5},
	{0},
};
static const struct repro_claim f64[] = {
	{"MPI on datagrams is faster than on connections", "superior", "of that, 8 bytes",
	 REPRO_RATIO, "datagrams", "connections", 8, 8, REPRO_AT_MOST, NAN, 0, 1},
	{0},
};
static const struct repro_claim f65[] = {
	{"Both ways at 2 KB, datagrams carry more than connections", "more than 40 %", "times",
	 REPRO_RATIO, "both ways, datagrams", "both ways, connections", 2048, 2048, REPRO_AT_LEAST,
	 1.4, 0, 1},
	{0},
};
static const struct repro_claim f68[] = {
	{"16 processes: connections take more memory than datagrams",
	 "2 to 10 % more (table 6.1, five applications)", "times", REPRO_MOST, "connections",
	 "datagrams", 0, 0, REPRO_AT_LEAST, 1.02, 0, 1},
	{0},
};

#define FIG(n, shows, why)                                                                         \
	{                                                                                          \
		"thesis/fig" n, shows, NULL, why                                                   \
	}

const struct repro_figure repro_thesis[] = {
	FIG("1.1", "Architectures of the 500 fastest computers.", "statistics of others"),
	FIG("2.1", "A cluster.", DRAWING),
	FIG("2.2", "Messaging libraries in layers.", DRAWING),
	FIG("2.3", "Non-blocking communication with and without help of the card.", DRAWING),
	FIG("2.4", "One-sided operations.", DRAWING),
	FIG("2.5", "The layers of MPICH.", DRAWING),
	FIG("2.6", "Remote direct memory access.", DRAWING),
	FIG("2.7", "Queue pairs of InfiniBand.", DRAWING),
	FIG("2.8", "The layers of iWARP.", DRAWING),
	FIG("2.9", "The layers of OpenFabrics.", DRAWING),
	{"thesis/fig3.1", "User-level latency between hosts and within one.", &repro_verbs_lat,
	 NULL, SOFTWARE, f31},
	{"thesis/fig3.2", "User-level bandwidth.", &repro_verbs_bw, NULL,
	 SOFTWARE "; one way, where the thesis has both", f32},
	{"thesis/fig3.3", "MPI latency, and its overhead over the user level.", &repro_mpi_lat,
	 NULL, SOFTWARE, f33},
	{"thesis/fig3.4", "MPI latency within a host.", &repro_mpi_lat, NULL, SOFTWARE, f34},
	{"thesis/fig3.5", "MPI bandwidth, one way and both.", &repro_mpi_bw, NULL,
	 SOFTWARE "; windows of messages, where the thesis has a ping-pong", f35},
	{"thesis/fig3.6", "User-level latency over several connections, by their number.",
	 &repro_conns_lat, NULL, SOFTWARE, f36},
	{"thesis/fig3.7", "User-level throughput over several connections.", &repro_conns_bw, NULL,
	 SOFTWARE, f37},
	{"thesis/fig3.8", "MPI latency of several pairs.", &repro_pairs_lat, NULL,
	 SOFTWARE "; all processes share the cores of one machine", f38},
	{"thesis/fig3.9", "MPI throughput of several pairs.", &repro_pairs_bw, NULL,
	 SOFTWARE "; one way, and all processes share the cores of one machine", f39},
	{"thesis/fig3.10", "Registering and deregistering memory.", &repro_register, NULL,
	 "nothing is pinned here: it is the table of regions, and no more", f310},
	{"thesis/fig3.11", "What a registration cache is worth.", &repro_cache, NULL,
	 "Weft's own device, which pins nothing, told to register piece by piece", f311},
	{"thesis/fig3.12", "Buffers that are used again, and latency.", &repro_buffers, NULL,
	 "one host; caches, not registrations, make the difference here", f312},
	FIG("3.13", "How overlap is timed.", DRAWING),
	{"thesis/fig3.14", "Overlap of communication and computation, as protocols were.",
	 &repro_overlap, NULL, "Weft without speculation and progress thread, 1 Gbit/s", f314},
	{"thesis/fig3.15", "Progress while a process computes, as protocols were.", &repro_progress,
	 NULL, "Weft without speculation and progress thread, 1 MB instead of 256 KB, 1 Gbit/s",
	 f315},
	FIG("4.1", "Rendezvous with an early sender.", DRAWING),
	FIG("4.2", "Rendezvous with an early receiver.", DRAWING),
	FIG("4.3", "The rendezvous that the receiver starts.", DRAWING),
	FIG("4.4", "Flow of a non-blocking receive.", DRAWING),
	FIG("4.5", "Flow of a non-blocking send.", DRAWING),
	FIG("4.6", "Flow of the progress engine.", DRAWING),
	FIG("4.7", "A race of RTS.", DRAWING),
	FIG("4.8", "Acknowledgements that avoid it.", DRAWING),
	FIG("4.9", "A race of RTR and eager messages.", DRAWING),
	FIG("4.10", "A race of a mispredicted RTR.", DRAWING),
	FIG("4.11", "Flow of a send with the eager flag.", DRAWING),
	FIG("4.12", "Why there is no deadlock.", DRAWING),
	{"thesis/fig4.13", "Overlap before and with the new rendezvous.", &repro_overlap, NULL,
	 "Weft with and without speculation and progress thread, 1 Gbit/s", f413},
	{"thesis/fig4.14", "Progress before and with the new rendezvous, 1 MB.", &repro_progress,
	 NULL, "Weft with and without speculation and progress thread, 1 Gbit/s", f414},
	FIG("4.15", "The exchange benchmark.",
	    "pseudo-code; weft-mpi-perf exchange is that program"),
	{"thesis/fig4.16", "Programs that compute and exchange: improvement of an iteration.",
	 &repro_exchange, NULL, "100 Mbit/s, since two cores compute and emulate the links", f416},
	FIG("4.17", "Wait time of applications: up to 30 % less (BT.A), 21 % more (CG.B).", NO_NAS),
	FIG("4.18", "Communication patterns of applications.", DRAWING),
	{"thesis/fig4.19", "Overhead of the new protocol.", &repro_late, NULL,
	 "latency only; the volume of applications is not measured", f419},
	{"thesis/fig5.1", "Latency, the cost of a copy, and what could be gained.", &repro_copy,
	 NULL, "one host, the layer below MPI", f51},
	FIG("5.2", "Data flow of the eager protocol.", DRAWING),
	FIG("5.3", "Data flow of put and get.", DRAWING),
	{"thesis/fig5.4", "Searching a buffer in a hash table and in a tree.", &repro_search, NULL,
	 NULL, f54},
	{"thesis/fig5.5", "Latency without the sender's copy.", &repro_copy, NULL,
	 "one host, the layer below MPI, both settings in one process", f55},
	{"thesis/fig5.6", "A spectrum of buffers, used once to a thousand times.", &repro_spectrum,
	 NULL, "one host; fewer buffers in a quick run", f56},
	{"thesis/fig5.7", "MPI_Put and MPI_Get without the copy.", &repro_onesided, NULL,
	 "one host", f57},
	FIG("5.8", "The spectrum with one-sided operations.",
	    "src/bench/bench_reuse.sh spectrum measures it, in an hour; there is nothing to be "
	    "seen (docs/measurements.md)"),
	FIG("5.9", "MPI_Bcast and MPI_Scatter without the copy.",
	    "four processes on two cores wait for a core most of the time: "
	    "src/bench/bench_reuse.sh coll sees no difference"),
	FIG("5.10", "Applications without the copy.", NO_NAS),
	FIG("6.1", "The layers of datagram-iWARP.", DRAWING),
	FIG("6.2", "The software implementation.", DRAWING),
	{"thesis/fig6.3", "Verbs latency of datagrams and connections.", &repro_verbs_lat, NULL,
	 "markers, which slow connections in the thesis, are off", f63},
	{"thesis/fig6.4", "MPI latency on datagrams and on connections.", &repro_mpi_lat, NULL,
	 "reliable datagrams (RD), not UD with reliability in MPI", f64},
	{"thesis/fig6.5", "MPI bandwidth both ways on datagrams and on connections.", &repro_mpi_bw,
	 NULL, "one pair of processes, not two", f65},
	FIG("6.6", "Communication time of applications on datagrams.", NO_NAS),
	FIG("6.7", "Run time of applications on datagrams.", NO_NAS),
	{"thesis/fig6.8", "Memory on datagrams and on connections.", &repro_memory, NULL,
	 "a program that sends a message to everyone, not applications", f68},
	{"thesis/table3.1", "Where MPIs switch from eager to rendezvous.", NULL, SETTING},
	{"thesis/table5.1", "How often applications use a buffer again.", NULL, NO_NAS},
	{"thesis/table5.2", "Where MVAPICH2 switches protocols.", NULL, SETTING},
	{"thesis/table5.3", "How often a buffer must be used for its registration to pay.", NULL,
	 "Weft's own device needs no registration: weft info shows what other devices need"},
	{"thesis/table5.4", "Which part of applications' buffers is used often.", NULL, NO_NAS},
	{"thesis/table6.1", "Memory of applications on datagrams and on connections.",
	 &repro_memory, NULL, "a program that sends a message to everyone, not applications", f68},
	{0},
};
