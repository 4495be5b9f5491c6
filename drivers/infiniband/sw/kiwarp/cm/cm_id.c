// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The link between an endpoint and its iw_cm_id: a reference, the addresses, the network namespace.
 *
 * Owns nothing. Works on endpoints in process context with their lock held.
 */
#include "cm_ep.h"

#include <net/ipv6.h>
#include <rdma/iw_cm.h>

#include "device.h"
#include "qp/caller.h"
#include "qp/qp.h"
#include "sock/sock.h"

static __be16 cm_port(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)addr)->sin6_port :
					     ((const struct sockaddr_in *)addr)->sin_port;
}

/**
 * kiw_ep_bind_id() - tie an endpoint to an iw_cm_id
 * @ep: new endpoint
 * @id: the iw_cm_id; referenced until kiw_ep_unbind_id() or the end of the endpoint
 *
 * Copies the addresses and the type of service. If the device uses the port mapper and the mapper
 * has answered, the addresses are those that it has chosen, else the consumer's. iw_cm may ask the
 * mapper in either case, but any process can pose as the mapper (kernel-faults.rst). So the answer
 * counts only where the administrator has enabled the mapper.
 *
 * If the mapper left the local port as it is, it has not reserved the port. Another socket may be
 * bound to it, so reuse of the port is not forced.
 *
 * Context: process; @ep's lock held.
 */
void kiw_ep_bind_id(struct kiw_ep *ep, struct iw_cm_id *id)
{
	bool is_mapped = id->mapped && kiw_device_uses_port_mapper(ep->dev);
	struct kiw_ep_startup *startup = ep->startup;

	lockdep_assert_held(&ep->lock);
	startup->local = is_mapped ? id->m_local_addr : id->local_addr;
	startup->remote = is_mapped ? id->m_remote_addr : id->remote_addr;
	startup->is_mapped = is_mapped &&
			     cm_port(&id->m_local_addr) != cm_port(&id->local_addr);
	startup->tos = id->tos_set ? id->tos : -1;
	ep->cm_id = id;
	id->add_ref(id);
}

/**
 * kiw_ep_unbind_id() - undo kiw_ep_bind_id() for an endpoint that was not started
 * @ep: endpoint in IDLE
 *
 * Context: process; @ep's lock held.
 */
void kiw_ep_unbind_id(struct kiw_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	ep->cm_id->rem_ref(ep->cm_id);
	ep->cm_id = NULL;
}

/**
 * kiw_ep_is_at_home() - does an endpoint belong to its device's network namespace?
 * @ep: endpoint that is bound to an iw_cm_id
 *
 * rdma_cm does not always ensure that: it listens for a wildcard address on the devices of all
 * namespaces, and in Linux 6.1, if devices are shared between namespaces, it finds a device by its
 * hardware address, which an interface in any namespace may have.
 *
 * Context: process, in a call from iw_cm; @ep's lock held.
 * Return: true: the consumer's namespace is that of the device's netdev.
 */
bool kiw_ep_is_at_home(const struct kiw_ep *ep)
{
	const struct net *net = kiw_caller_net(ep->cm_id);

	lockdep_assert_held(&ep->lock);
	return net && net_eq(net, ep->dev->socks.net);
}

/**
 * kiw_ep_refuse_foreigner() - refuse an endpoint of another network namespace
 * @ep: endpoint for which kiw_ep_is_at_home() is false
 *
 * Context: any.
 * Return: -EADDRNOTAVAIL, as bind() does for an address of another namespace.
 */
int kiw_ep_refuse_foreigner(struct kiw_ep *ep)
{
	kiw_count(&ep->dev->stats, KIW_STAT_CONN_OTHER_NETNS);
	return -EADDRNOTAVAIL;
}

/**
 * kiw_ep_is_wildcard() - is an endpoint's own address a wildcard?
 * @ep: endpoint that is bound to an iw_cm_id
 *
 * Context: process; @ep's lock held.
 * Return: true: it stands for all addresses of its family.
 */
bool kiw_ep_is_wildcard(const struct kiw_ep *ep)
{
	const struct sockaddr_storage *addr = &ep->startup->local;

	lockdep_assert_held(&ep->lock);
	if (addr->ss_family == AF_INET6)
		return ipv6_addr_any(&((const struct sockaddr_in6 *)addr)->sin6_addr);
	return ((const struct sockaddr_in *)addr)->sin_addr.s_addr == htonl(INADDR_ANY);
}

static int cm_ifindex(const struct kiw_ep *ep)
{
	const struct sockaddr_storage *addr = &ep->startup->local;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	bool is_ambiguous = kiw_ep_is_wildcard(ep);

	if (addr->ss_family == AF_INET6 && ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL)
		is_ambiguous = true;
	return is_ambiguous ? ep->dev->ndev->ifindex : 0;
}

/**
 * kiw_ep_local() - describe the local end of an endpoint's stream
 * @ep: endpoint that is bound to an iw_cm_id
 *
 * Context: process, in a call from iw_cm; @ep's lock held.
 * Return: the local end, which refers to @ep's startup.
 */
struct kiw_sock_local kiw_ep_local(const struct kiw_ep *ep)
{
	lockdep_assert_held(&ep->lock);
	return (struct kiw_sock_local) {
		.addr = &ep->startup->local,
		.ifindex = cm_ifindex(ep),
		.tos = ep->startup->tos,
		.is_reserved = ep->startup->is_mapped,
		.is_memalloc = ep->qp && ep->qp->is_memalloc,
		.is_process = kiw_caller_is_process(),
	};
}
