/* Writes the seeds of fuzz_stream: one short conversation for each opcode and for the
 * ways they go on from one another. Argument: the directory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wire_mpa.h"
#include "wire_rdmap.h"
#include "wire_weft.h"

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

static void frame(const struct wire_seg *seg, const void *payload, size_t len)
{
	size_t hdr;

	step(0x00);
	hdr = wire_seg_encode(seg, out + out_len + 1);
	if (len)
		memcpy(out + out_len + 1 + hdr, payload, len);
	out[out_len] = (uint8_t)(hdr + len);
	out_len += 1 + hdr + len;
}

static void send_frame(uint8_t opcode, uint32_t msn, uint32_t mo, bool last, size_t len)
{
	struct wire_seg seg = {.opcode = opcode, .last = last, .msn = msn, .mo = mo, .ulp = 5};
	uint8_t data[200] = {1, 2, 3};

	frame(&seg, data, len);
}

static void write_frame(uint32_t stag, uint64_t to, bool last, size_t len)
{
	struct wire_seg seg = {.opcode = WIRE_OP_WRITE, .last = last, .stag = stag, .to = to};
	uint8_t data[200] = {4, 5, 6};

	frame(&seg, data, len);
}

static void control(uint8_t type, uint32_t seq)
{
	struct wire_seg seg = {
		.opcode = WIRE_OP_CONTROL, .last = true, .qn = WIRE_QN_CONTROL, .msn = 1};
	struct wire_ctl ctl = {.type = type, .seq = seq};
	uint8_t data[WIRE_CTL_LEN];

	frame(&seg, data, wire_ctl_encode(&ctl, data));
}

static void sends(void)
{
	begin(0);
	send_frame(WIRE_OP_SEND, 1, 0, true, 10);
	send_frame(WIRE_OP_SEND_IMM, 2, 0, false, 100);
	send_frame(WIRE_OP_SEND_IMM, 2, 100, true, 50);
	send_frame(WIRE_OP_SEND_SE, 3, 0, true, 0);
	end("sends");
	begin(4); /* without a receive, then with one */
	send_frame(WIRE_OP_SEND, 1, 0, true, 10);
	step(0xa0);
	control(WIRE_CTL_RETRY, 1);
	send_frame(WIRE_OP_SEND, 1, 0, true, 10);
	end("rnr");
	begin(1);
	send_frame(WIRE_OP_SEND, 1, 0, false, 10);
	send_frame(WIRE_OP_SEND, 3, 0, true, 10);
	end("uc-gap");
}

static void writes(void)
{
	struct wire_seg imm = {.opcode = WIRE_OP_IMM, .last = true, .msn = 1};
	uint8_t data[WIRE_IMM_LEN];

	wire_imm_encode(9, data);
	for (uint8_t uc = 0; uc < 2; uc++) {
		begin(uc);
		write_frame(0xff000000, 0x1000, false, 100);
		write_frame(0xff000000, 0x1064, true, 100);
		frame(&imm, data, sizeof(data));
		write_frame(0xff000000, 0x1000 + 8192 - 50, true, 100);
		end(uc ? "uc-write" : "write");
	}
	begin(0);
	write_frame(0xfe000000, 0x1000, true, 8);
	end("write-closed");
}

static void reads(void)
{
	struct wire_seg req = {.last = true, .qn = WIRE_QN_READ_REQ, .msn = 1};
	struct wire_read_req r = {
		.sink_stag = 1, .len = 5000, .src_stag = 0xff000000, .src_to = 0x1000};
	struct wire_atomic_req a = {
		.op = WIRE_ATOMIC_FETCH_ADD, .stag = 0xff000000, .to = 0x1000, .add_swap = 1};
	uint8_t data[WIRE_ATOMIC_REQ_LEN];

	begin(0);
	req.opcode = WIRE_OP_READ_REQ;
	frame(&req, data, wire_read_req_encode(&r, data));
	req.opcode = WIRE_OP_ATOMIC_REQ;
	req.msn = 2;
	frame(&req, data, wire_atomic_req_encode(&a, data));
	end("read-atomic");
}

static void answers(void)
{
	struct wire_seg resp = {.opcode = WIRE_OP_READ_RESP, .last = true, .stag = 1};
	struct wire_seg aresp = {
		.opcode = WIRE_OP_ATOMIC_RESP, .last = true, .qn = WIRE_QN_ATOMIC_RESP, .msn = 1};
	struct wire_atomic_resp a = {.id = 2, .value = 5};
	uint8_t data[64] = {0};

	begin(0);
	step(0xb0 | 4); /* read of 64 bytes */
	step(0xb0 | 6); /* fetch and add */
	step(0xb0 | 0); /* write */
	step(0xb0 | 2); /* send */
	control(WIRE_CTL_PROBE, 0);
	frame(&resp, data, 64);
	frame(&aresp, data, wire_atomic_resp_encode(&a, data));
	control(WIRE_CTL_ACK, 3);
	control(WIRE_CTL_RNR, 4);
	control(WIRE_CTL_READY, 4);
	control(WIRE_CTL_ACK, 4);
	end("answers");
	begin(0);
	step(0xb0 | 2);
	step(0xb0 | 1);
	control(WIRE_CTL_DAMAGED, 1);
	control(WIRE_CTL_PACE, 0);
	step(0xd1);
	step(0xd2);
	control(WIRE_CTL_ACK, 2);
	end("damaged");
}

static void endings(void)
{
	struct wire_seg seg = {
		.opcode = WIRE_OP_TERMINATE, .last = true, .qn = WIRE_QN_TERMINATE, .msn = 1};
	struct wire_term t = {.layer = WIRE_LAYER_DDP, .etype = WIRE_ETYPE_DDP_TAGGED};
	uint8_t data[WIRE_TERM_MAX];

	begin(0);
	step(0xb0);
	frame(&seg, data, wire_term_encode(&t, data));
	end("terminate");
	begin(8);
	step(0xb8 | 2);
	send_frame(WIRE_OP_SEND, 1, 0, false, 100);
	end("reset");
}

static void handshakes(void)
{
	struct wire_mpa_hs hs = {.revision = 1, .crc = true, .pd_len = WIRE_HELLO_LEN};
	int len;

	begin(2);
	step(0xe0);
	len = wire_mpa_hs_encode(&hs, out + out_len + 1, WIRE_MPA_HS_MAX);
	out[out_len] = (uint8_t)len;
	out_len += 1 + (size_t)len;
	end("handshake");
	begin(0);
	step(0xe0); /* a frame that lies about its length, then its rest in pieces */
	step(4);
	step(0x00);
	step(0x12);
	step(0x41);
	step(0x43);
	step(0xe0);
	step(2);
	step(0x00);
	step(0x00);
	end("pieces");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	dir = argv[1];
	sends();
	writes();
	reads();
	answers();
	endings();
	handshakes();
	return 0;
}
