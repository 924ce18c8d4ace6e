/* weft info: what is here, and what is missing. */
#include "cli_output.h"

#include <getopt.h>
#include <string.h>

#include "cli_facts.h"

static const char help[] =
	"Usage: weft info [OPTIONS]\n"
	"\n"
	"Shows the devices that verbs programs will see, the libraries in use, what the\n"
	"kernel offers, which MPIs are here and how they reach Weft, every tunable with its\n"
	"value, and what is missing and how to get it. For each device it measures what copies\n"
	"and registrations cost, by size, and from how many uses of a buffer on it is worth\n"
	"registering (FI_WEFT_REUSE).\n"
	"\n"
	"Options:\n"
	"  -j, --json  print one JSON object instead of text\n"
	"  -h, --help  this text\n"
	"\n"
	"Examples:\n"
	"  weft info\n"
	"  WEFT_NETDEV=eth1 weft info                     would this setting work?\n"
	"  weft info --json | jq -r '.devices[0].gids[].address'\n"
	"\n"
	"Exit codes: 0 when the software RNIC is usable, 1 when it is not, 2 for wrong usage.\n";

static const char *text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "-";
}

static long long number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static void print_us(const json_t *m, const char *key)
{
	const json_t *ns = json_object_get(m, key);

	if (json_is_number(ns))
		printf(" %8.3f us", json_number_value(ns) / 1e3);
	else
		printf(" %11s", "-");
}

/* Table 5.3 of the thesis, for this machine, and what it comes from. */
static void print_costs(const json_t *costs)
{
	json_t *m;
	size_t i;

	if (!json_object_get(costs, "sizes"))
		return;
	printf("           Memory %s registered%s; what a short transfer costs:\n",
	       json_is_true(json_object_get(costs, "needed")) ? "has to be"
							      : "need not be (but could be)",
	       json_is_true(json_object_get(costs, "kept")) ? " once" : " for each transfer");
	printf("           %7s %11s %11s %11s %s\n", "bytes", "register R", "copy C", "overhead V",
	       "uses n > R/(C-V)");
	json_array_foreach (json_object_get(costs, "sizes"), i, m) {
		printf("           %7lld", number(m, "bytes"));
		print_us(m, "register_ns");
		print_us(m, "copy_ns");
		print_us(m, "overhead_ns");
		if (json_is_integer(json_object_get(m, "uses")))
			printf(" %lld\n", number(m, "uses"));
		else
			printf(" never\n");
	}
}

static void print_device(const json_t *dev)
{
	const json_t *lid = json_object_get(dev, "lid");
	json_t *gid;
	size_t i;

	printf("  %-8s %s", text(dev, "name"), text(dev, "kind"));
	if (json_object_get(dev, "state"))
		printf(", %s", text(dev, "state"));
	if (json_object_get(dev, "error"))
		printf(" (%s)", text(dev, "error"));
	if (lid)
		printf(", LID 0x%04llx", json_integer_value(lid));
	printf(", GUID %s\n", text(dev, "guid"));
	json_array_foreach (json_object_get(dev, "gids"), i, gid)
		printf("           GID %lld: %s on %s, MTU %lld\n", number(gid, "index"),
		       text(gid, "gid"), text(gid, "netdev"), number(gid, "mtu"));
	print_costs(json_object_get(dev, "costs"));
}

/* Words up to column 80, each line indented. */
static void print_wrapped(const char *s, int indent)
{
	int column = 0;

	while (*s) {
		int len = (int)strcspn(s, " ");

		if (column == 0)
			column = printf("%*s%.*s", indent, "", len, s);
		else if (column + 1 + len > 80)
			column = printf("\n%*s%.*s", indent, "", len, s) - 1;
		else
			column += printf(" %.*s", len, s);
		s += len;
		s += strspn(s, " ");
	}
	putchar('\n');
}

static void print_tunable(const json_t *t)
{
	printf("  %s=%s%s (default %s; %s)\n", text(t, "name"),
	       json_is_null(json_object_get(t, "value")) ? "" : text(t, "value"),
	       json_is_true(json_object_get(t, "set")) ? " [set]" : "",
	       json_is_null(json_object_get(t, "default")) ? "not set" : text(t, "default"),
	       text(t, "type"));
	if (!json_is_null(json_object_get(t, "error")))
		printf("      NOT USED: %s\n", text(t, "error"));
	print_wrapped(text(t, "help"), 6);
}

static void print_text(const json_t *info)
{
	const json_t *machine = json_object_get(info, "machine");
	json_t *item;
	size_t i;

	printf("weft %s\n\nDevices\n", text(info, "version"));
	json_array_foreach (json_object_get(info, "devices"), i, item)
		print_device(item);
	if (json_array_size(json_object_get(info, "devices")) == 0)
		printf("  none\n");

	printf("\nLibraries\n");
	json_array_foreach (json_object_get(info, "libraries"), i, item)
		printf("  %-31s %s\n", text(item, "role"), text(item, "path"));

	printf("\nMachine\n");
	printf("  %-20s %s\n", "CRC32C", text(machine, "crc32c"));
	printf("  %-20s %lld\n", "cores", number(machine, "cores"));
	printf("  %-20s %lld; each RC connection takes one\n", "open files",
	       number(machine, "open_files"));
	json_array_foreach (json_object_get(info, "kernel"), i, item)
		printf("  %-20s %-3s %s\n", text(item, "name"),
		       json_is_true(json_object_get(item, "present")) ? "yes" : "no",
		       text(item, "why"));

	printf("\nPrograms\n");
	json_array_foreach (json_object_get(info, "programs"), i, item)
		printf("  %-20s %s\n", text(item, "name"), text(item, "path"));

	printf("\nMPI\n");
	json_array_foreach (json_object_get(info, "mpis"), i, item) {
		printf("  %s %s: %s\n", text(item, "name"), text(item, "version"),
		       json_is_true(json_object_get(item, "reaches")) ? "reaches Weft by"
								      : "does not reach Weft");
		print_wrapped(text(item, "how"), 6);
	}
	if (json_array_size(json_object_get(info, "mpis")) == 0)
		printf("  none\n");

	printf("\nTunables (environment variables)\n");
	json_array_foreach (json_object_get(info, "tunables"), i, item)
		print_tunable(item);

	printf("\nMissing\n");
	json_array_foreach (json_object_get(info, "missing"), i, item)
		printf("  %s (%s)\n      %s\n", text(item, "what"), text(item, "why"),
		       text(item, "get"));
	if (json_array_size(json_object_get(info, "missing")) == 0)
		printf("  nothing\n");
}

static json_t *collect(void)
{
	json_t *info = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "version",
				 WEFT_VERSION, "devices", cli_facts_devices(), "libraries",
				 cli_facts_libraries(), "machine", cli_facts_machine(), "kernel",
				 cli_facts_kernel(), "programs", cli_facts_programs(), "mpis",
				 cli_facts_mpis(), "tunables", cli_facts_tunables());

	json_object_set_new(info, "missing", cli_facts_missing(info));
	return info;
}

static bool usable(const json_t *info)
{
	json_t *dev;
	size_t i;

	json_array_foreach (json_object_get(info, "devices"), i, dev)
		if (!strcmp(text(dev, "kind"), "software"))
			return !json_object_get(dev, "error");
	return false;
}

int cli_info(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		/* For the build: the bodies of weft-tunables(7) and fi_weft(7). */
		{"man-tunables", required_argument, NULL, 'M'},
		{0},
	};
	bool json = false;
	json_t *info;
	int opt, code;

	while ((opt = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		case 'M':
			cli_tunables_man(optarg, stdout);
			return cli_finish(CLI_OK);
		default:
			return cli_try_help();
		}
	}
	if (optind < argc) {
		cli_error("unexpected argument '%s'", argv[optind]);
		return cli_try_help();
	}
	info = collect();
	code = usable(info) ? CLI_OK : CLI_FAILED;
	if (json) {
		cli_print_json(info, 0);
	} else {
		print_text(info);
		json_decref(info);
	}
	return cli_finish(code);
}
