/* A stand-in for the system's libibverbs, with one device, fake0.
 *
 * It writes down what it was called with into `fake_log`, which the test program
 * defines (and exports); other programs do without.
 */
#ifndef WEFT_FAKE_IBVERBS_H
#define WEFT_FAKE_IBVERBS_H

#include <stdint.h>

#define FAKE_MAX_ARGS 12

struct fake_log {
	int calls;        /* of any function */
	const char *name; /* the last one */
	uintptr_t arg[FAKE_MAX_ARGS];
	double real[FAKE_MAX_ARGS];
	char text[64];
	int devices;         /* how many fake devices there are; -1: no RDMA in this kernel */
	int disassociate;    /* what the exported variable is set to by get_device_list */
	int foreign_devices; /* seen by ibv_import_device: it can not bear them */
	void *last_list;
	void *freed_list;
};
extern struct fake_log fake_log __attribute__((weak));

#define FAKE_RETURN 0x5eed /* of calls that are only written down */

/* Calls that this library writes down: name, what its first argument is (a context, an
 * object with a context, or a device), number of arguments. */
#define FAKE_CALLS(CALL)                                                                           \
	CALL(ibv_get_device_guid, DEVICE, 1)                                                       \
	CALL(ibv_get_device_index, DEVICE, 1)                                                      \
	CALL(ibv_close_device, CONTEXT, 1)                                                         \
	CALL(ibv_query_device, CONTEXT, 2)                                                         \
	CALL(ibv_query_port, CONTEXT, 3)                                                           \
	CALL(ibv_query_gid, CONTEXT, 4)                                                            \
	CALL(_ibv_query_gid_ex, CONTEXT, 6)                                                        \
	CALL(_ibv_query_gid_table, CONTEXT, 5)                                                     \
	CALL(ibv_query_gid_type, CONTEXT, 4)                                                       \
	CALL(ibv_query_pkey, CONTEXT, 4)                                                           \
	CALL(ibv_get_pkey_index, CONTEXT, 3)                                                       \
	CALL(ibv_get_async_event, CONTEXT, 2)                                                      \
	CALL(ibv_create_comp_channel, CONTEXT, 1)                                                  \
	CALL(ibv_destroy_comp_channel, OBJECT, 1)                                                  \
	CALL(ibv_get_cq_event, OBJECT, 3)                                                          \
	CALL(ibv_ack_cq_events, OBJECT, 2)                                                         \
	CALL(ibv_alloc_pd, CONTEXT, 1)                                                             \
	CALL(ibv_dealloc_pd, OBJECT, 1)                                                            \
	CALL(ibv_reg_mr, OBJECT, 4)                                                                \
	CALL(ibv_reg_mr_iova, OBJECT, 5)                                                           \
	CALL(ibv_reg_mr_iova2, OBJECT, 5)                                                          \
	CALL(ibv_reg_dmabuf_mr, OBJECT, 6)                                                         \
	CALL(ibv_rereg_mr, OBJECT, 6)                                                              \
	CALL(ibv_dereg_mr, OBJECT, 1)                                                              \
	CALL(ibv_import_pd, CONTEXT, 2)                                                            \
	CALL(ibv_unimport_pd, OBJECT, 1)                                                           \
	CALL(ibv_import_mr, OBJECT, 2)                                                             \
	CALL(ibv_unimport_mr, OBJECT, 1)                                                           \
	CALL(ibv_import_dm, CONTEXT, 2)                                                            \
	CALL(ibv_unimport_dm, OBJECT, 1)                                                           \
	CALL(ibv_create_cq, CONTEXT, 5)                                                            \
	CALL(ibv_resize_cq, OBJECT, 2)                                                             \
	CALL(ibv_destroy_cq, OBJECT, 1)                                                            \
	CALL(ibv_create_srq, OBJECT, 2)                                                            \
	CALL(ibv_modify_srq, OBJECT, 3)                                                            \
	CALL(ibv_query_srq, OBJECT, 2)                                                             \
	CALL(ibv_destroy_srq, OBJECT, 1)                                                           \
	CALL(ibv_create_qp, OBJECT, 2)                                                             \
	CALL(ibv_qp_to_qp_ex, OBJECT, 1)                                                           \
	CALL(ibv_modify_qp, OBJECT, 3)                                                             \
	CALL(ibv_query_qp, OBJECT, 4)                                                              \
	CALL(ibv_destroy_qp, OBJECT, 1)                                                            \
	CALL(ibv_query_ece, OBJECT, 2)                                                             \
	CALL(ibv_set_ece, OBJECT, 2)                                                               \
	CALL(ibv_query_qp_data_in_order, OBJECT, 3)                                                \
	CALL(ibv_attach_mcast, OBJECT, 3)                                                          \
	CALL(ibv_detach_mcast, OBJECT, 3)                                                          \
	CALL(ibv_create_ah, OBJECT, 2)                                                             \
	CALL(ibv_destroy_ah, OBJECT, 1)                                                            \
	CALL(ibv_init_ah_from_wc, CONTEXT, 5)                                                      \
	CALL(ibv_create_ah_from_wc, OBJECT, 4)                                                     \
	CALL(ibv_resolve_eth_l2_from_gid, CONTEXT, 4)                                              \
	CALL(ibv_dontfork_range, NOTHING, 2)                                                       \
	CALL(ibv_rate_to_mult, NOTHING, 1)                                                         \
	CALL(ibv_cmd_dealloc_pd, NOTHING, 1)                                                       \
	CALL(ibv_cmd_reg_mr, NOTHING, 10)                                                          \
	CALL(ibv_cmd_create_cq, NOTHING, 9)                                                        \
	CALL(execute_ioctl, NOTHING, 2)

#endif
