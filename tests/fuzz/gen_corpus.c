/* Writes valid frames of every kind as seeds: gen_corpus DIRECTORY makes one folder
 * per fuzz target in it. The corpus in this folder began with these files; running
 * this again adds to it what a new opcode or frame needs. */
#include <errno.h>
#include <sys/stat.h>

#include "fuzz.h"
#include "wire_mpa.h"
#include "wire_rd.h"
#include "wire_weft.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)data;
	(void)size;
	return 0;
}

static const char *root;

static void seed(const char *target, const char *name, const void *data, size_t len)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, target);
	HOLDS(!mkdir(path, 0777) || errno == EEXIST);
	snprintf(path, sizeof(path), "%s/%s/seed-%s", root, target, name);
	f = fopen(path, "wb");
	HOLDS(f && fwrite(data, 1, len, f) == len && !fclose(f));
}

static void hello_and_ctl(void)
{
	struct wire_hello h = {.version = WIRE_HELLO_VERSION,
			       .type = WIRE_HELLO_RC,
			       .src_qpn = 0x123456,
			       .dst_qpn = 0xabcdef,
			       .rq_psn = 0xffffff,
			       .dst_addr = 0x7f000001};
	uint8_t b[1 + WIRE_HELLO_LEN] = {0};
	char name[16];

	seed("hello", "hello", b, 1 + wire_hello_encode(&h, b + 1));
	b[0] = 1;
	for (unsigned type = WIRE_CTL_ACK; type <= WIRE_CTL_PROBE; type++) {
		struct wire_ctl c = {.type = (uint8_t)type, .arg = 14, .seq = 0x01020304};

		snprintf(name, sizeof(name), "ctl-%u", type);
		seed("hello", name, b, 1 + wire_ctl_encode(&c, b + 1));
	}
}

static void handshakes(void)
{
	struct wire_mpa_hs req = {.crc = true, .revision = 1, .pd_len = 4, .pd = "data"};
	struct wire_mpa_hs enh = {.enhanced = true, .revision = 2, .ird = 1, .ord = 1};
	struct wire_mpa_hs rep = {.reply = true,
				  .markers = true,
				  .reject = true,
				  .enhanced = true,
				  .p2p = true,
				  .rtr_write = true,
				  .revision = 2,
				  .ird = 0x3fff,
				  .ord = 0x3fff,
				  .pd_len = 3,
				  .pd = "pd"};
	uint8_t b[WIRE_MPA_HS_MAX];

	seed("mpa", "request", b, (size_t)wire_mpa_hs_encode(&req, b, sizeof(b)));
	seed("mpa", "enhanced", b, (size_t)wire_mpa_hs_encode(&enh, b, sizeof(b)));
	seed("mpa", "reply", b, (size_t)wire_mpa_hs_encode(&rep, b, sizeof(b)));
}

/* Payload of a message of this opcode. */
static size_t payload(uint8_t opcode, uint8_t *p)
{
	switch (opcode) {
	case WIRE_OP_READ_REQ:
		return wire_read_req_encode(&(struct wire_read_req){1, 2, 4096, 3, 4}, p);
	case WIRE_OP_ATOMIC_REQ:
		return wire_atomic_req_encode(&(struct wire_atomic_req){.op = WIRE_ATOMIC_CMP_SWAP,
									.id = 1,
									.stag = 2,
									.to = 8,
									.add_swap = 3,
									.compare = 4},
					      p);
	case WIRE_OP_ATOMIC_RESP:
		return wire_atomic_resp_encode(&(struct wire_atomic_resp){1, 2}, p);
	case WIRE_OP_IMM:
	case WIRE_OP_IMM_SE:
		return wire_imm_encode(0xdeadbeef, p);
	case WIRE_OP_TERMINATE:
		return wire_term_encode(&(struct wire_term){.layer = 2, .ecode = 2}, p);
	case WIRE_OP_CONTROL:
		return wire_ctl_encode(&(struct wire_ctl){.type = WIRE_CTL_ACK, .seq = 7}, p);
	default:
		memset(p, 0x5a, 7);
		return 7;
	}
}

/* One ULPDU of this opcode. */
static size_t segment(uint8_t opcode, uint8_t *b)
{
	static const uint8_t qn[16] = {[WIRE_OP_READ_REQ] = 1,
				       [WIRE_OP_ATOMIC_REQ] = 1,
				       [WIRE_OP_TERMINATE] = 2,
				       [WIRE_OP_ATOMIC_RESP] = 3,
				       [WIRE_OP_CONTROL] = 4};
	struct wire_seg seg = {.opcode = opcode, .last = true};
	size_t n;

	if (opcode == WIRE_OP_WRITE || opcode == WIRE_OP_READ_RESP) {
		seg.stag = 0x01020304;
		seg.to = 0x1000;
	} else {
		seg.qn = qn[opcode];
		seg.msn = 1;
	}
	n = wire_seg_encode(&seg, b);
	return n + payload(opcode, b + n);
}

static void segments(void)
{
	char name[16];
	uint8_t b[128];

	for (unsigned op = 0; op <= WIRE_OP_CONTROL; op++) {
		snprintf(name, sizeof(name), "op-%x", op);
		seed("seg", name, b, segment((uint8_t)op, b));
	}
}

/* For each a stream of all opcodes, with right CRCs (1) and to be repaired (7). */
static void fpdus(void)
{
	uint8_t plain[2048] = {1}, marked[4096] = {1, 0}, b[128];
	struct wire_mpa_mark m = {0};
	size_t p = 1, q = 2;

	for (unsigned op = 0; op <= WIRE_OP_CONTROL; op++) {
		size_t n = segment((uint8_t)op, b);

		memcpy(plain + p + 2, b, n);
		p += wire_mpa_fpdu_seal(plain + p, n, true);
		q += wire_mpa_mark_fpdu(&m, marked + q, b, n, true);
	}
	seed("fpdu", "crc", plain, p);
	seed("mark", "crc", marked, q);
	plain[0] = 3;
	marked[0] = 7;
	seed("fpdu", "repair", plain, p);
	seed("mark", "repair", marked, q);
	plain[0] = marked[0] = 0;
	seed("fpdu", "no-crc", plain, p);
	seed("mark", "no-crc", marked, q);
}

static void terminates(void)
{
	struct wire_term t = {.layer = WIRE_LAYER_RDMAP, .etype = WIRE_ETYPE_RDMAP_PROTECTION};
	uint8_t b[WIRE_TERM_MAX], ulpdu[128];

	seed("term", "plain", b, wire_term_encode(&t, b));
	wire_term_cite(&t, ulpdu, segment(WIRE_OP_WRITE, ulpdu));
	seed("term", "write", b, wire_term_encode(&t, b));
	wire_term_cite(&t, ulpdu, segment(WIRE_OP_READ_REQ, ulpdu));
	seed("term", "read", b, wire_term_encode(&t, b));
}

static void dgrams(void)
{
	static const uint8_t ops[] = {WIRE_OP_SEND, WIRE_OP_SEND_SE, WIRE_OP_SEND_IMM,
				      WIRE_OP_SEND_IMM_SE};
	uint8_t b[64] = {0};
	char name[16];

	for (size_t i = 0; i < sizeof(ops); i++) {
		struct wire_seg seg = {.opcode = ops[i], .last = true, .ulp = 0x11111111};
		size_t n = wire_dgram_encode(&seg, b + 1);

		memset(b + 1 + n, 0x5a, 8);
		wire_dgram_seal(b + 1, n + 8);
		b[0] = i & 1;
		snprintf(name, sizeof(name), "op-%x", ops[i]);
		seed("dgram", name, b, 1 + n + 8);
	}
}

static void rd_seed(const char *name, uint8_t *b, size_t body)
{
	wire_rd_seal(b + 1, WIRE_RD_HDR + body);
	seed("rd", name, b, 1 + WIRE_RD_HDR + body);
}

/* Every packet, as it is, and every segment in its lane, with the CRC to be repaired. */
static void rd_packets(void)
{
	static const struct wire_rd_hello hello = {.life = 1,
						   .id = 2,
						   .cookie = 3,
						   .src_qpn = 0x123456,
						   .dst_qpn = 0xabcdef,
						   .qkey = 0x11111111,
						   .mtu = 1472,
						   .room = 212992};
	static const uint64_t words[2] = {5, 1};
	uint8_t b[1 + WIRE_RD_HDR + 128] = {0}, *body = b + 1 + WIRE_RD_HDR;
	char name[16];

	for (unsigned type = WIRE_RD_INIT; type <= WIRE_RD_BYE; type++) {
		struct wire_rd h = {.type = (uint8_t)type,
				    .flags = type == WIRE_RD_DATA ? WIRE_RD_SKIP : 0,
				    .count = type == WIRE_RD_ACK ? 2 : 0,
				    .id = type == WIRE_RD_INIT ? 0 : 7,
				    .ack = {8, 9}};
		size_t n = 0;

		wire_rd_encode(&h, b + 1);
		if (type <= WIRE_RD_REFUSE)
			n = wire_rd_hello_encode(&hello, body);
		else if (type == WIRE_RD_ACK)
			n = wire_rd_sack_encode(words, 2, body);
		else if (type == WIRE_RD_NAK)
			n = wire_rd_nak_encode(&(struct wire_rd_nak){WIRE_RD_RNR, 14}, body);
		snprintf(name, sizeof(name), "type-%u", type);
		rd_seed(name, b, n);
	}
	b[0] = 1;
	for (unsigned op = 0; op <= WIRE_OP_CONTROL; op++) {
		bool response = op == WIRE_OP_READ_RESP || op == WIRE_OP_ATOMIC_RESP;
		struct wire_rd h = {.type = WIRE_RD_DATA,
				    .flags = response ? WIRE_RD_RESPONSE : WIRE_RD_ASK,
				    .id = 7,
				    .psn = op};

		wire_rd_encode(&h, b + 1);
		snprintf(name, sizeof(name), "op-%x", op);
		rd_seed(name, b, segment((uint8_t)op, body));
	}
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	root = argv[1];
	hello_and_ctl();
	handshakes();
	segments();
	fpdus();
	terminates();
	dgrams();
	rd_packets();
	return 0;
}
