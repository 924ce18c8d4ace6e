/* What copies and registrations cost on a device, and what follows from that (msg_costs.h). */
#include "cli_facts.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "cli_paths.h"
#include "ofi_tune.h"
#include "msg.h"
#include "msg_costs.h"

static json_t *ns(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *sizes(const struct msg_costs *c)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < MSG_COSTS_CLASSES; i++) {
		const struct msg_cost *m = &c->of[i];

		json_array_append_new(
			list,
			json_pack("{s:I, s:o, s:o, s:o, s:o}", "bytes",
				  (json_int_t)msg_costs_size(i), "register_ns", ns(m->reg),
				  "copy_ns", ns(m->copy), "overhead_ns", ns(m->over), "uses",
				  m->n == MSG_COSTS_NEVER ? json_null() : json_integer(m->n)));
	}
	return list;
}

json_t *cli_facts_costs(const char *device)
{
	struct msg_dev_conf conf = {.name = device,
				    .cache = util_tune_enum(&ofi_tunables[OFI_TUNE_CACHE]),
				    .piecewise =
					    util_tune_enum(&ofi_tunables[OFI_TUNE_LOCAL]) == 1};
	struct cli_paths paths;
	struct msg_costs costs;
	struct msg_dev *dev;
	int err = cli_paths_find(&paths);

	if (!err) {
		msg_verbs_at(paths.verbs);
		err = msg_dev_open_conf(&conf, &dev);
	}
	if (!err) {
		err = msg_dev_costs(dev, &costs);
		msg_dev_close(dev);
	}
	if (err)
		return json_pack("{s:s}", "error", strerror(-err));
	return json_pack("{s:b, s:b, s:o}", "needed", costs.needed, "kept", costs.cached, "sizes",
			 sizes(&costs));
}
