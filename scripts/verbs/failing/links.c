// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Devices, and interfaces of kiwarp_ip.
 */
#include "failing.h"

#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>
/* A message about links, with up to three strings */
struct message {
	struct nlmsghdr hdr;
	char attrs[128];
};

static void add_attr(struct message *m, __u16 type, const void *value, size_t len)
{
	struct nlattr *attr = (struct nlattr *)((char *)m + NLMSG_ALIGN(m->hdr.nlmsg_len));

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + len;
	memcpy((char *)attr + NLA_HDRLEN, value, len);
	m->hdr.nlmsg_len = NLMSG_ALIGN(m->hdr.nlmsg_len) + attr->nla_len;
}

/* The answer on @fd to @m; ENOBUFS: there was no memory for it, or for the question */
static int ask(int fd, struct message *m)
{
	struct {
		struct nlmsghdr hdr;
		struct nlmsgerr err;
		char rest[256];
	} answer = {};

	if (send(fd, m, m->hdr.nlmsg_len, 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
		return errno;
	return -answer.err.error;
}

static int ask_kernel(struct message *m)
{
	static int fd = -1;

	if (fd < 0)
		fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	return ask(fd, m);
}

static struct message message(int op)
{
	struct message m = {
		.hdr = {
			.nlmsg_len = NLMSG_HDRLEN,
			.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op),
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		},
	};

	return m;
}

/* The index of make_link()'s device, or -1 if there is none */
static int link_index(void)
{
	int left = pause_failing();
	FILE *f = popen("rdma dev show kiwx 2>&1", "r");
	int index;

	MUST(f);
	if (fscanf(f, "%d:", &index) != 1)
		index = -1;
	pclose(f);
	inject(left);
	return index;
}

/* The result of a request whose answer was lost: success if the device exists as @wanted */
static int judge_link(int err, bool wanted)
{
	if (err != ENOBUFS)
		return err;
	return (link_index() >= 0) == wanted ? 0 : ENOMEM;
}

static int make_link(void)
{
	struct message m = message(RDMA_NLDEV_CMD_NEWLINK);

	add_attr(&m, RDMA_NLDEV_ATTR_DEV_NAME, "kiwx", 5);
	add_attr(&m, RDMA_NLDEV_ATTR_LINK_TYPE, "kiwarp", 7);
	add_attr(&m, RDMA_NLDEV_ATTR_NDEV_NAME, "dummyx", 7);
	return judge_link(ask_kernel(&m), true);
}

static int unmake_link(void)
{
	struct message m = message(RDMA_NLDEV_CMD_DELLINK);
	int index = link_index();

	add_attr(&m, RDMA_NLDEV_ATTR_DEV_INDEX, &index, 4);
	return judge_link(ask_kernel(&m), false);
}

/**
 * links() - adding and removing a device
 *
 * Context: user space.
 */
void links(void)
{
	static const struct op op = { OP("device", link) };

	/* Create the socket before any allocation fails */
	MUST(link_index() < 0 && !make_link() && !unmake_link());
	walk(&op);
}

static int ask_route(struct message *m)
{
	static int fd = -1;

	if (fd < 0)
		fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	return ask(fd, m);
}

/* A request for the interface kipx, which comes up when it is made */
static struct message ip_message(int type, int flags)
{
	const struct ifinfomsg info = { .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
	struct message m = {
		.hdr = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(info)),
			.nlmsg_type = type,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags,
		},
	};

	memcpy(m.attrs, &info, sizeof(info));
	add_attr(&m, IFLA_IFNAME, "kipx", 5);
	return m;
}

/* The interface below */
static __u32 below;

static bool has_ip_link(void)
{
	int left = pause_failing();
	bool has = if_nametoindex("kipx");

	inject(left);
	return has;
}

/* The kernel says ENFILE if there is no memory for a socket. */
static int judge_ip_link(int err, bool wanted)
{
	if (err == ENFILE)
		err = ENOMEM;
	if (err != ENOBUFS)
		return err;
	return has_ip_link() == wanted ? 0 : ENOMEM;
}

static int make_ip_link(void)
{
	struct message m = ip_message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	const struct {
		struct nlattr head;
		char kind[12];
	} info = { { NLA_HDRLEN + 10, IFLA_INFO_KIND }, "kiwarp_ip" };

	add_attr(&m, IFLA_LINK, &below, sizeof(below));
	add_attr(&m, IFLA_LINKINFO, &info, sizeof(info));
	return judge_ip_link(ask_route(&m), true);
}

static int unmake_ip_link(void)
{
	struct message m = ip_message(RTM_DELLINK, 0);

	return judge_ip_link(ask_route(&m), false);
}

/**
 * ip_links() - adding and removing an interface of kiwarp_ip
 *
 * Context: user space.
 */
void ip_links(void)
{
	/* device_add() says EINVAL if there was no memory for the name */
	static const struct op op = {
		OP("interface of kiwarp_ip", ip_link), .others = { EINVAL },
	};

	below = if_nametoindex("eth0");
	MUST(below);
	/* Create the socket before any allocation fails */
	MUST(!has_ip_link() && !make_ip_link() && has_ip_link() && !unmake_ip_link());
	walk(&op);
}
