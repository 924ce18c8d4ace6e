#include "fabric_net_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- words of a line ---- */

static char *skip_blanks(char *s)
{
	return s + strspn(s, " \t\r\v\f");
}

/* Digits of the base, and at least one; *end is what follows. False: none, or beyond most. */
static bool take_number(char *s, unsigned base, uint64_t most, uint64_t *value, char **end)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t v = 0;
	char *at = s;

	for (; *at; at++) {
		const char *d = strchr(digits, *at >= 'A' && *at <= 'F' ? *at + 32 : *at);

		if (!d || (unsigned)(d - digits) >= base)
			break;
		if (v > (most - (uint64_t)(d - digits)) / base)
			return false;
		v = v * base + (uint64_t)(d - digits);
	}
	*value = v;
	*end = at;
	return at > s;
}

static bool take_guid(char *s, uint64_t *guid, char **end)
{
	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		s += 2;
	return take_number(s, 16, UINT64_MAX, guid, end) && *guid != 0;
}

/* "…": the string is cut out of the line. */
static bool take_quoted(char *s, char **text, char **end)
{
	char *close = *s == '"' ? strchr(s + 1, '"') : NULL;

	if (!close)
		return false;
	*close = 0;
	*text = s + 1;
	*end = close + 1;
	return true;
}

/* The number that follows a word of a comment. What comments say is a help, and never wrong. */
static uint16_t number_after(char *comment, const char *word)
{
	char *at = strstr(comment, word), *end;
	uint64_t v;

	if (!at || !take_number(at + strlen(word), 10, UINT16_MAX, &v, &end))
		return 0;
	return (uint16_t)v;
}

/* A quoted text in a comment, from the first quote to the last: it may have some inside. Returns
 * what follows it, and "" if there is none. */
static char *comment_text(char *comment, const char **text)
{
	char *open = strchr(comment, '"'), *close = open ? strrchr(comment, '"') : NULL;

	*text = "";
	if (!open || close == open)
		return comment;
	*close = 0;
	*text = open + 1;
	return close + 1;
}

/* Cuts the comment off; "" if there is none. A # inside of quotes is none. */
static char *cut_comment(char *line)
{
	bool quoted = false;

	for (; *line; line++) {
		quoted ^= *line == '"';
		if (*line == '#' && !quoted) {
			*line = 0;
			return line + 1;
		}
	}
	return line;
}

/* ---- nodes ---- */

static void *grow(void *array, size_t count, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 64;
	void *new;

	if (count < *room)
		return array;
	new = realloc(array, more * size);
	if (new)
		*room = more;
	return new;
}

static struct fabric_net_node *new_node(struct net_reader *r)
{
	struct fabric_net_node *nodes =
		grow(r->net.nodes, r->net.n_nodes, &r->room_nodes, sizeof(*nodes));

	if (!nodes)
		return NULL;
	r->net.nodes = nodes;
	return memset(&nodes[r->net.n_nodes], 0, sizeof(*nodes));
}

/* The GUID of the line above, or that in an id of the usual form. */
static int node_guid(struct net_reader *r, struct fabric_net_node *n, char *id)
{
	char *end;

	n->guid = r->guid;
	r->guid = 0;
	if (n->guid)
		return 0;
	if (id[0] && id[1] == '-' && take_number(id + 2, 16, UINT64_MAX, &n->guid, &end) && !*end &&
	    n->guid)
		return 0;
	return net_refuse(r, r->line,
			  "%s has no GUID; expected a line such as switchguid=0x2c90100000040 "
			  "before it, or an id such as S-0002c90100000040",
			  fabric_quote(id).text);
}

static int parse_node(struct net_reader *r, enum fabric_net_kind kind, char *rest, char *comment)
{
	struct fabric_net_node *n = new_node(r);
	char *end, *id;
	uint64_t ports;
	int ret;

	if (!n)
		return -ENOMEM;
	rest = skip_blanks(rest);
	if (!take_number(rest, 10, FABRIC_NET_PORTS_MAX, &ports, &end) || ports == 0)
		return net_refuse(r, r->line,
				  "%s is no number of ports; expected 1 to %d, and then the id in "
				  "quotes",
				  fabric_quote(rest).text, FABRIC_NET_PORTS_MAX);
	rest = skip_blanks(end);
	if (!take_quoted(rest, &id, &end) || !*id)
		return net_refuse(r, r->line, "%s where the id of the node should be, in quotes",
				  fabric_quote(rest).text);
	if (*skip_blanks(end))
		return net_refuse(r, r->line, "%s behind the id; expected the end or a # comment",
				  fabric_quote(end).text);
	ret = node_guid(r, n, id);
	if (ret)
		return ret;
	n->id = id;
	n->kind = kind;
	n->n_ports = (uint32_t)ports;
	n->line = r->line;
	comment = comment_text(comment, &n->desc);
	n->lid = number_after(comment, "lid ");
	n->lmc = number_after(comment, "lmc ");
	r->net.n_nodes++;
	return 0;
}

/* ---- ports ---- */

/* [3], and [ext 7] behind it, which is what is printed on the case. */
static bool take_port(char *s, uint64_t *port, char **end)
{
	if (*s != '[' || !take_number(s + 1, 10, FABRIC_NET_PORTS_MAX, port, &s) || *s != ']')
		return false;
	s++;
	if (!strncmp(s, "[ext ", 5) && strchr(s, ']'))
		s = strchr(s, ']') + 1;
	*end = s;
	return *port > 0;
}

/* (2c900000000d1), if there is one. */
static bool take_port_guid(char *s, uint64_t *guid, char **end)
{
	*end = s = skip_blanks(s);
	*guid = 0;
	if (*s != '(')
		return true;
	if (!take_guid(s + 1, guid, &s) || *s != ')')
		return false;
	*end = s + 1;
	return true;
}

/* A switch's line has the name and the LID of the other end in its comment, that of a host first
 * its own LID. */
static void port_comment(struct net_end *e, char *comment)
{
	char *quote = strchr(comment, '"');
	const char *text;

	if (quote) {
		*quote = 0;
		e->lid = number_after(comment, "lid ");
		e->lmc = number_after(comment, "lmc ");
		*quote = '"';
	}
	comment = comment_text(comment, &text);
	e->peer_lid = number_after(comment, "lid ");
}

static int check_end(struct net_reader *r, const struct net_end *e)
{
	const struct fabric_net_node *n = &r->net.nodes[e->node];

	if (e->port > n->n_ports)
		return net_refuse(r, r->line, "port %u of %s, which has %u port%s (line %u)",
				  e->port, fabric_quote(n->id).text, n->n_ports,
				  n->n_ports == 1 ? "" : "s", n->line);
	return 0;
}

static int parse_port(struct net_reader *r, char *line, char *comment)
{
	struct net_end e = {.line = r->line}, *ends;
	uint64_t port, peer_port;
	char *s, *id;

	if (r->net.n_nodes == 0)
		return net_refuse(r, r->line,
				  "a port before the first node; expected a Switch or Ca line");
	if (!take_port(line, &port, &s))
		return net_refuse(r, r->line, "%s is no port; expected [1] to [%d]",
				  fabric_quote(line).text, FABRIC_NET_PORTS_MAX);
	if (!take_port_guid(s, &e.guid, &s))
		return net_refuse(r, r->line, "%s is no GUID; expected one such as (2c900000000d1)",
				  fabric_quote(s).text);
	s = skip_blanks(s);
	if (!take_quoted(s, &id, &s) || !*id)
		return net_refuse(r, r->line,
				  "%s where the id of the node at the other end should be, in "
				  "quotes",
				  fabric_quote(s).text);
	if (!take_port(s, &peer_port, &s))
		return net_refuse(r, r->line, "%s where the port of %s should be, such as [1]",
				  fabric_quote(s).text, fabric_quote(id).text);
	if (!take_port_guid(s, &e.peer_guid, &s))
		return net_refuse(r, r->line, "%s is no GUID; expected one such as (2c900000000d1)",
				  fabric_quote(s).text);
	s = skip_blanks(s);
	if (*s && strncmp(s, "w=", 2) != 0 && strncmp(s, "s=", 2) != 0)
		return net_refuse(r, r->line, "%s behind the port; expected the end or a # comment",
				  fabric_quote(s).text);
	e.node = r->net.n_nodes - 1;
	e.port = (uint16_t)port;
	e.peer_id = id;
	e.peer_port = (uint16_t)peer_port;
	port_comment(&e, comment);
	ends = grow(r->ends, r->n_ends, &r->room_ends, sizeof(*ends));
	if (!ends)
		return -ENOMEM;
	r->ends = ends;
	ends[r->n_ends++] = e;
	return check_end(r, &e);
}

/* ---- lines ---- */

static int parse_key(struct net_reader *r, const char *key, char *value)
{
	static const char *const ignored[] = {"vendid", "devid", "sysimgguid", "width", "speed"};
	char *end;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		if (!strcmp(key, ignored[i]))
			return 0;
	if (strcmp(key, "switchguid") != 0 && strcmp(key, "caguid") != 0 &&
	    strcmp(key, "rtguid") != 0)
		return net_refuse(r, r->line,
				  "%s is not known; known are vendid=, devid=, sysimgguid=, "
				  "switchguid=, caguid= and rtguid=",
				  fabric_quote(key).text);
	if (!take_guid(value, &r->guid, &end) || (*skip_blanks(end) && *end != '('))
		return net_refuse(r, r->line, "%s is no GUID; expected one such as 0x2c90100000040",
				  fabric_quote(value).text);
	r->guid_line = r->line;
	return 0;
}

static int parse_line(struct net_reader *r, char *line)
{
	static const struct {
		const char *word;
		int kind;
	} words[] = {
		{"Switch", FABRIC_NET_SWITCH}, {"Ca", FABRIC_NET_CA},
		{"Hca", FABRIC_NET_CA},        {"Rt", FABRIC_NET_ROUTER},
		{"Router", FABRIC_NET_ROUTER}, {"Chassis", -1}, /* of ibnetdiscover -g */
		{"Non-Chassis", -1},           {"Hostname:", -1},
	};
	char *comment = cut_comment(line), *end;

	line = skip_blanks(line);
	if (!*line)
		return 0;
	if (*line == '[')
		return parse_port(r, line, comment);
	end = line + strcspn(line, " \t\r\v\f=");
	if (*end == '=') {
		*end = 0;
		return parse_key(r, line, end + 1);
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].word) != (size_t)(end - line) ||
		    strncmp(line, words[i].word, (size_t)(end - line)) != 0)
			continue;
		return words[i].kind < 0
			       ? 0
			       : parse_node(r, (enum fabric_net_kind)words[i].kind, end, comment);
	}
	return net_refuse(r, r->line,
			  "%s is no line of a topology; expected Switch, Ca, Rt, a port such as "
			  "[1], or a # comment",
			  fabric_quote(line).text);
}

int net_parse(struct net_reader *r)
{
	char *line = r->net.text, *next;
	int ret = 0;

	for (r->line = 1; !ret && line; r->line++, line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		ret = parse_line(r, line);
	}
	if (!ret && r->guid)
		ret = net_refuse(r, r->guid_line,
				 "the file ends before the node of this GUID; is it cut off?");
	if (!ret && r->net.n_nodes == 0)
		ret = fabric_refuse(r->why, r->why_size,
				    "%s has no nodes; expected what ibnetdiscover prints", r->file);
	return ret;
}
