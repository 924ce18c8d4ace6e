/* What coll_net.c and coll_net_open.c share. */
#ifndef WEFT_COLL_NET_IN_H
#define WEFT_COLL_NET_IN_H

#include <pthread.h>

#include "coll_net.h"

struct coll_net {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	bool sleeps; /* the completion queue can be waited for */
	_Atomic uint64_t next_key;
	coll_net_arrived arrived;
	pthread_mutex_t lock;
	pthread_mutex_t names_lock;
	struct coll_names names;
	uint64_t pinged[2]; /* written by peers; written to peers */
	struct coll_mem ping;
};

extern struct coll_net coll_net;

#endif
