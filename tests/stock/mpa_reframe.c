/* Rewrites a capture of MPA so that every TCP segment carries exactly one FPDU.
 *
 *	mpa_reframe IN.pcap OUT.pcap
 *
 * Wireshark finds markers only in segments that begin with an FPDU and end with it, as
 * RNICs send them; a byte stream that the kernel has cut at its own discretion makes it
 * lose its way. Only the cuts are changed here, no byte of the stream. An FPDU with a
 * marker in it that ends right before the position of the next one is left out: Wireshark
 * 4 counts that marker to it and not to the next FPDU (RFC 5044, 4.3), and waits for it.
 *
 * It also checks what Wireshark does not: that markers stand where they must and point to
 * the start of their FPDU, and that no byte is left over.
 *
 * Reads classic pcap files of Ethernet, IPv4, TCP.
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS     256
#define HANDSHAKE   20 /* header of an MPA request or reply */
#define MARKER      4
#define SPACING     512
#define ETHERNET    14
#define HEADERS     (ETHERNET + 20 + 20)
#define PAYLOAD_MAX (65535 - 40)

/* One direction of a connection. */
struct stream {
	uint32_t src, dst;
	uint16_t sport, dport;
	bool known, started;
	bool markers;   /* the receiver asked for them */
	uint32_t next;  /* sequence number expected */
	uint32_t wrote; /* sequence number in the output */
	uint8_t *buf;
	size_t len, cap;
	size_t pos; /* bytes since the last marker position */
};

static struct stream streams[STREAMS];
static int n_streams;
static FILE *out;
static unsigned long n_out, n_markers, n_left_out;

static void die(const char *what)
{
	fprintf(stderr, "mpa_reframe: %s\n", what);
	exit(1);
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static struct stream *find(uint32_t src, uint16_t sport, uint32_t dst, uint16_t dport)
{
	for (int i = 0; i < n_streams; i++) {
		struct stream *s = &streams[i];

		if (s->src == src && s->sport == sport && s->dst == dst && s->dport == dport)
			return s;
	}
	if (n_streams == STREAMS)
		die("too many connections");
	streams[n_streams] =
		(struct stream){.src = src, .dst = dst, .sport = sport, .dport = dport, .wrote = 1};
	return &streams[n_streams++];
}

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

static void consume(struct stream *s, size_t n)
{
	s->wrote += (uint32_t)n;
	s->len -= n;
	memmove(s->buf, s->buf + n, s->len);
}

/* The first n bytes of the stream become one packet. */
static void emit(struct stream *s, size_t n)
{
	uint8_t h[HEADERS] = {[12] = 0x08};
	uint8_t *ip = h + ETHERNET, *tcp = ip + 20;
	uint32_t record[4] = {(uint32_t)(n_out / 1000000), (uint32_t)(n_out % 1000000),
			      (uint32_t)(HEADERS + n), (uint32_t)(HEADERS + n)};

	if (n > PAYLOAD_MAX)
		die("an FPDU does not fit into one packet: make WEFT_FPDU smaller");
	ip[0] = 0x45;
	put16(ip + 2, (uint32_t)(40 + n));
	ip[8] = 64;
	ip[9] = 6;
	put32(ip + 12, s->src);
	put32(ip + 16, s->dst);
	put16(tcp, s->sport);
	put16(tcp + 2, s->dport);
	put32(tcp + 4, s->wrote);
	put32(tcp + 8, find(s->dst, s->dport, s->src, s->sport)->wrote);
	tcp[12] = 0x50;
	tcp[13] = 0x18;
	put16(tcp + 14, 65535);
	fwrite(record, sizeof(record), 1, out);
	fwrite(h, sizeof(h), 1, out);
	fwrite(s->buf, n, 1, out);
	consume(s, n);
	n_out++;
}

/* Length on the stream of the FPDU at its start, 0 when that is not known yet. */
static size_t fpdu_length(const struct stream *s)
{
	size_t start = s->markers && !s->pos ? MARKER : 0;
	size_t content, at;

	if (s->len < start + 2)
		return 0;
	content = 2u + get16(s->buf + start);
	content = (content + 3) / 4 * 4 + 4;
	if (!s->markers)
		return content;
	/* Walk: a marker takes four bytes at every 512th. */
	for (at = 0; content;) {
		size_t in = (s->pos + at) % SPACING, room;

		if (!in) {
			at += MARKER;
			in = MARKER;
		}
		room = SPACING - in;
		if (room > content)
			room = content;
		at += room;
		content -= room;
	}
	return at;
}

/* Returns the number of markers in the FPDU. */
static unsigned int check_markers(const struct stream *s, size_t len)
{
	size_t start = s->pos ? 0 : MARKER;
	unsigned int n = 0;

	for (size_t at = (SPACING - s->pos) % SPACING; at < len; at += SPACING, n++)
		if (get16(s->buf + at) || get16(s->buf + at + 2) != (at < start ? 0 : at - start))
			die("a marker does not point to the start of its FPDU");
	return n;
}

static void cut(struct stream *s)
{
	for (;;) {
		size_t n;

		if (!s->started) {
			if (s->len < HANDSHAKE || s->len < HANDSHAKE + (size_t)get16(s->buf + 18))
				return;
			if (memcmp(s->buf, "MPA ID Re", 9) != 0)
				die("a connection does not begin with MPA's handshake");
			find(s->dst, s->dport, s->src, s->sport)->markers = s->buf[16] & 0x80;
			s->started = true;
			emit(s, HANDSHAKE + (size_t)get16(s->buf + 18));
			continue;
		}
		n = fpdu_length(s);
		if (!n || n > s->len)
			return;
		if (s->markers) {
			unsigned int markers = check_markers(s, n);

			n_markers += markers;
			s->pos = (s->pos + n) % SPACING;
			if (markers && !s->pos) {
				consume(s, n);
				n_left_out++;
				continue;
			}
		}
		emit(s, n);
	}
}

static void segment(struct stream *s, uint32_t seq, const uint8_t *data, size_t len)
{
	uint32_t old;

	if (!s->known)
		die("the capture does not hold the start of a connection");
	old = s->next - seq;
	if ((int32_t)old < 0)
		die("packets are missing from the capture");
	if (old >= len)
		return; /* a repetition */
	data += old;
	len -= old;
	if (s->len + len > s->cap) {
		s->cap = 2 * (s->len + len);
		s->buf = realloc(s->buf, s->cap);
		if (!s->buf)
			die("out of memory");
	}
	memcpy(s->buf + s->len, data, len);
	s->len += len;
	s->next += (uint32_t)len;
	cut(s);
}

static void packet(const uint8_t *p, size_t len)
{
	size_t ihl, total, doff;
	struct stream *s;

	if (len < HEADERS || get16(p + 12) != 0x0800 || p[ETHERNET + 9] != 6)
		return;
	p += ETHERNET;
	len -= ETHERNET;
	ihl = (size_t)(p[0] & 15) * 4;
	total = get16(p + 2) ? get16(p + 2) : len; /* 0: larger than IPv4 can say */
	doff = (size_t)(p[ihl + 12] >> 4) * 4;
	if (total > len || ihl + doff > total)
		die("a packet was not captured whole");
	s = find(get32(p + 12), get16(p + ihl), get32(p + 16), get16(p + ihl + 2));
	if (p[ihl + 13] & 2) { /* SYN */
		s->known = true;
		s->next = get32(p + ihl + 4) + 1;
	} else if (total > ihl + doff) {
		segment(s, get32(p + ihl + 4), p + ihl + doff, total - ihl - doff);
	}
}

int main(int argc, char **argv)
{
	/* version 2.4, packets of any length, Ethernet; in our own byte order */
	static const uint32_t header[6] = {0xa1b2c3d4, 4 << 16 | 2, 0, 0, 262144, 1};
	static uint8_t buf[262144];
	uint32_t file[6], record[4];
	FILE *in;

	if (argc != 3)
		die("usage: mpa_reframe IN.pcap OUT.pcap");
	in = fopen(argv[1], "rb");
	out = fopen(argv[2], "wb");
	if (!in || !out)
		die("cannot open the files");
	if (fread(file, sizeof(file), 1, in) != 1 ||
	    (file[0] != 0xa1b2c3d4 && file[0] != 0xa1b23c4d) || file[5] != 1)
		die("not a pcap file of Ethernet in the byte order of this machine");
	fwrite(header, sizeof(header), 1, out);
	while (fread(record, sizeof(record), 1, in) == 1) {
		if (record[2] > sizeof(buf) || fread(buf, record[2], 1, in) != 1)
			die("the file ends in a packet");
		packet(buf, record[2]);
	}
	for (int i = 0; i < n_streams; i++)
		if (streams[i].len)
			die("bytes are left that are not a whole FPDU");
	if (fclose(out))
		die("cannot write");
	printf("%lu frames, %lu left out, %lu markers\n", n_out, n_left_out, n_markers);
	return 0;
}
