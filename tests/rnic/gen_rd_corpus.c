/* Writes the seeds of fuzz_rd_device: one short conversation for each kind of packet.
 * Argument: the directory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wire_rd.h"

#define KEY    0xff000000 /* stands for a key that opens */
#define CLOSED 0xfe000000
#define HANDLE 0xfd000000 /* ... for the request that was posted last */

static const char *dir;
static uint8_t out[4096];
static size_t out_len;

static void begin(uint8_t options)
{
	out[0] = options;
	out_len = 1;
}

static void step(uint8_t op)
{
	out[out_len++] = op;
}

static void end(const char *name)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/seed-%s", dir, name);
	f = fopen(path, "wb");
	if (!f || fwrite(out, 1, out_len, f) != out_len || fclose(f)) {
		perror(path);
		exit(1);
	}
}

static void packet(enum wire_rd_type type, uint8_t flags, int psn, int ack, const void *body,
		   size_t len)
{
	step((uint8_t)type);
	step(flags);
	step(type == WIRE_RD_ACK ? (uint8_t)(len / 8) : 0);
	step((uint8_t)psn);
	step((uint8_t)ack);
	step(0);
	step((uint8_t)len);
	if (len)
		memcpy(out + out_len, body, len);
	out_len += len;
}

static void segment(uint8_t flags, int psn, const struct wire_seg *seg, const void *payload,
		    size_t len)
{
	uint8_t body[256];
	size_t hdr = wire_seg_encode(seg, body);

	if (len)
		memcpy(body + hdr, payload, len);
	packet(WIRE_RD_DATA, flags, psn, 0, body, hdr + len);
}

static const uint8_t data[128] = {1, 2, 3};

static void send_packet(int psn, uint8_t opcode, uint32_t ssn, uint32_t mo, bool last, size_t len)
{
	struct wire_seg seg = {.opcode = opcode, .last = last, .msn = ssn, .mo = mo, .ulp = 9};

	segment(0, psn, &seg, data, len);
}

static void write_packet(int psn, uint32_t key, uint64_t to, size_t len)
{
	struct wire_seg seg = {
		.opcode = WIRE_OP_WRITE, .tagged = true, .last = true, .stag = key, .to = to};

	segment(WIRE_RD_ASK, psn, &seg, data, len);
}

static void read_packet(int psn, uint32_t key, uint32_t len)
{
	struct wire_seg seg = {.opcode = WIRE_OP_READ_REQ, .last = true, .qn = WIRE_QN_READ_REQ};
	struct wire_read_req r = {.sink_stag = 1, .len = len, .src_stag = key, .src_to = 0x1000};
	uint8_t body[WIRE_READ_REQ_LEN];

	segment(0, psn, &seg, body, wire_read_req_encode(&r, body));
}

static void atomic_packet(int psn, uint32_t key, uint64_t to)
{
	struct wire_seg seg = {.opcode = WIRE_OP_ATOMIC_REQ, .last = true, .qn = WIRE_QN_READ_REQ};
	struct wire_atomic_req a = {.op = WIRE_ATOMIC_FETCH_ADD,
				    .id = 1,
				    .stag = key,
				    .to = to,
				    .add_swap = 1,
				    .add_swap_mask = UINT64_MAX,
				    .compare_mask = UINT64_MAX};
	uint8_t body[WIRE_ATOMIC_REQ_LEN];

	segment(0, psn, &seg, body, wire_atomic_req_encode(&a, body));
}

static void nak(int psn, uint8_t reason)
{
	struct wire_rd_nak n = {reason, 0};
	uint8_t body[WIRE_RD_NAK_LEN];

	packet(WIRE_RD_NAK, 0, psn, 0, body, wire_rd_nak_encode(&n, body));
}

static void sends(void)
{
	begin(2);
	send_packet(0, WIRE_OP_SEND, 0, 0, true, 10);
	send_packet(0, WIRE_OP_SEND_IMM, 1, 0, false, 100);
	send_packet(1, WIRE_OP_SEND_SE, 2, 0, true, 0);
	send_packet(0, WIRE_OP_SEND_IMM, 1, 100, true, 50);
	end("sends");
	begin(3); /* without a receive, then with one */
	send_packet(0, WIRE_OP_SEND, 0, 0, true, 10);
	send_packet(1, WIRE_OP_SEND, 1, 0, true, 10);
	step(0xa0);
	step(0xa1);
	send_packet(0, WIRE_OP_SEND, 0, 0, true, 120);
	send_packet(0, WIRE_OP_SEND, 1, 0, true, 10);
	packet(WIRE_RD_DATA, WIRE_RD_SKIP, 0, 0, NULL, 0);
	end("rnr");
}

static void others(void)
{
	struct wire_seg imm = {.opcode = WIRE_OP_IMM, .last = true, .msn = 0, .ulp = 100};
	uint8_t body[WIRE_IMM_LEN];

	begin(2);
	write_packet(1, KEY, 0x1000, 100);
	write_packet(2, CLOSED, 0x1000, 8);
	write_packet(3, KEY, 0x1000 + 8190, 8);
	wire_imm_encode(5, body);
	segment(0, 0, &imm, body, sizeof(body));
	end("writes");
	begin(2);
	read_packet(1, KEY, 3000);
	atomic_packet(0, KEY, 0x1000);
	atomic_packet(0, KEY, 0x1001);
	read_packet(0, CLOSED, 8);
	read_packet(0, KEY, 100000);
	packet(WIRE_RD_PROBE, 0, 0, 0, NULL, 0);
	step(0xdd);
	end("reads");
}

static void answers(void)
{
	struct wire_seg rsp = {
		.opcode = WIRE_OP_READ_RESP, .tagged = true, .last = true, .stag = HANDLE};
	struct wire_seg arsp = {
		.opcode = WIRE_OP_ATOMIC_RESP, .last = true, .qn = WIRE_QN_ATOMIC_RESP};
	struct wire_seg term = {.opcode = WIRE_OP_TERMINATE, .last = true, .qn = WIRE_QN_TERMINATE};
	struct wire_atomic_resp a = {HANDLE, 5};
	struct wire_rd_error e = {HANDLE, WIRE_RD_ACCESS};
	uint8_t body[64];

	begin(0);
	packet(WIRE_RD_ACK, 0, 0, 1, NULL, 0);
	step(0xb3); /* a read of 64 bytes */
	packet(WIRE_RD_ACK, 0, 0, 1, NULL, 0);
	segment(WIRE_RD_RESPONSE, 0, &rsp, data, 64);
	step(0xb5); /* an atomic */
	segment(WIRE_RD_RESPONSE, 0, &arsp, body, wire_atomic_resp_encode(&a, body));
	packet(WIRE_RD_ACK, 0, 0, 1, NULL, 0);
	step(0xb3);
	segment(WIRE_RD_RESPONSE, 0, &term, body, wire_rd_error_encode(&e, body));
	packet(WIRE_RD_PROBE, 0, 0, 1, NULL, 0);
	end("answers");
	begin(0);
	packet(WIRE_RD_ACK, 0, 0, 1, NULL, 0);
	step(0xbe); /* sends of four packets */
	step(0xbe);
	step(0xba);
	memset(body, 0, sizeof(body));
	body[7] = 5;
	packet(WIRE_RD_ACK, 0, 0, 0, body, 16);
	nak(0, WIRE_RD_RNR);
	step(0xdc);
	nak(0, WIRE_RD_READY);
	nak(4, WIRE_RD_INVALID);
	packet(WIRE_RD_ACK, 0, 0, 4, NULL, 0);
	step(0xdd);
	packet(WIRE_RD_ACK, 0, 0, 6, NULL, 0);
	end("refusals");
}

static void endings(void)
{
	static const uint8_t right[8] = {1, 1, 1, 1, 1, 1, 1, 1};
	static const uint8_t other[8] = {2, 1, 1, 1, 1, 1, 1, 1};

	begin(6); /* nobody knows anybody */
	packet(WIRE_RD_INIT, 0, 0, 0, right, 8);
	packet(WIRE_RD_INIT, 0, 0, 0, right, 8);
	step(0xb0);
	packet(WIRE_RD_CHALLENGE, 0, 0, 0, right, 8);
	packet(WIRE_RD_INIT, 0, 0, 0, other, 8);
	packet(WIRE_RD_INIT, 0, 0, 0, other, 8);
	end("hellos");
	begin(6);
	step(0xb0);
	packet(WIRE_RD_CHALLENGE, 0, 0, 0, right, 8);
	packet(WIRE_RD_ACCEPT, 0, 0, 0, right, 8);
	packet(WIRE_RD_RESET, 0, 0, 0, NULL, 0);
	step(0xb0);
	packet(WIRE_RD_REFUSE, 0, 0, 0, right, 8);
	step(0xdf);
	end("contact");
	begin(0);
	step(0xbe);
	send_packet(0, WIRE_OP_SEND, 0, 0, false, 10);
	packet(WIRE_RD_BYE, 0, 0, 0, NULL, 0);
	end("bye");
	begin(8);
	step(0xb4);
	send_packet(1, WIRE_OP_SEND, 0, 0, false, 10);
	step(0xd0);
	step(0xb4);
	end("error");
	begin(0);
	step(0xbe);
	step(0xde);
	step(0xdf);
	step(0xdf);
	end("silence");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	dir = argv[1];
	sends();
	others();
	answers();
	endings();
	return 0;
}
