// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Devices.
 */
#include "failing.h"

#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/netlink.h>
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

/* The kernel's answer to @m; ENOBUFS: there was no memory for it, or for the question */
static int ask_kernel(struct message *m)
{
	static int fd = -1;

	struct {
		struct nlmsghdr hdr;
		struct nlmsgerr err;
		char rest[256];
	} answer = {};

	if (fd < 0)
		fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	if (send(fd, m, m->hdr.nlmsg_len, 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
		return errno;
	return -answer.err.error;
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
