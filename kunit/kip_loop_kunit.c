// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which packets kiwarp_ip takes for segments of its own connections: by their addresses and ports,
 * or by those of the socket that they come from. Sockets are fakes with only the fields that are
 * looked at, and network namespaces are addresses that are only compared. Also how addresses are
 * parsed.
 */
#include "../drivers/infiniband/ulp/kiwarp_ip/loop.c"
#include "../drivers/infiniband/ulp/kiwarp_ip/sockaddr.c"

#include <linux/skbuff.h>
#include <net/tcp_states.h>

#include "util.h"

#define OWN_PORT	64755
#define OWN_IPV4	0x0a4d0001
#define OTHER_IPV4	0x0a4d0002
#define OTHER_PORT	40000
#define PEER_PORT	64000
#define PORTS		(2 * sizeof(__be16))
#define NET		(&init_net)

static const u8 own_gid6[16] = { 0xfd, 0x77, [15] = 1 };
static const u8 other_gid6[16] = { 0xfd, 0x77, [15] = 2 };

/**
 * struct packet - description of a packet
 * @saddr: source address of IPv4
 * @saddr6: source address of IPv6; NULL: the packet is one of IPv4
 * @type: EtherType; 0: that of the IP header
 * @protocol: what follows the IP header
 * @sport: source port
 * @dport: destination port
 * @frag_off: fragment offset and flags of IPv4
 * @options: bytes of options of IPv4
 * @cut: bytes that are missing at the end
 */
struct packet {
	u32 saddr;
	const u8 *saddr6;
	u16 type;
	u8 protocol;
	u16 sport;
	u16 dport;
	u16 frag_off;
	u8 options;
	u8 cut;
};

/* A packet that is recognized; cases change one field each */
static struct packet own_packet(void)
{
	return (struct packet) {
		.saddr = OWN_IPV4,
		.protocol = IPPROTO_TCP,
		.sport = OWN_PORT,
		.dport = OTHER_PORT,
	};
}

static void put_ipv4(struct sk_buff *skb, const struct packet *p)
{
	struct iphdr *ip = skb_put_zero(skb, sizeof(*ip) + p->options);

	ip->version = 4;
	ip->ihl = (sizeof(*ip) + p->options) / 4;
	ip->protocol = p->protocol;
	ip->frag_off = htons(p->frag_off);
	ip->saddr = htonl(p->saddr);
	ip->daddr = htonl(OTHER_IPV4);
}

static void put_ipv6(struct sk_buff *skb, const struct packet *p)
{
	struct ipv6hdr *ip = skb_put_zero(skb, sizeof(*ip));

	ip->version = 6;
	ip->nexthdr = p->protocol;
	memcpy(&ip->saddr, p->saddr6, sizeof(ip->saddr));
	memcpy(&ip->daddr, other_gid6, sizeof(ip->daddr));
}

static struct sk_buff *make_packet(struct kunit *test, const struct packet *p)
{
	struct sk_buff *skb = alloc_skb(256, GFP_KERNEL);
	struct kip_wire_hdr *hdr;
	__be16 *ports;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	hdr = skb_put_zero(skb, sizeof(*hdr));
	hdr->type = htons(p->type ?: p->saddr6 ? ETH_P_IPV6 : ETH_P_IP);
	if (p->saddr6)
		put_ipv6(skb, p);
	else
		put_ipv4(skb, p);
	ports = skb_put(skb, PORTS);
	ports[0] = htons(p->sport);
	ports[1] = htons(p->dport);
	skb_trim(skb, skb->len - p->cut);
	return skb;
}

static void own_ipv4(u8 *lladdr)
{
	u8 gid[16];

	kip_addr_gid_of_ipv4(gid, htonl(OWN_IPV4));
	kip_addr_make(lladdr, OWN_PORT, gid, KIP_ADDR_RC);
}

/* Asks about a packet of @p, which @sk has sent if it is not NULL */
static bool is_own(struct kunit *test, const struct packet *p, struct sock *sk)
{
	struct sk_buff *skb = make_packet(test, p);
	u8 lladdr[KIP_ADDR_LEN];
	bool ret;

	if (p->saddr6 || (sk && sk->sk_family == AF_INET6))
		kip_addr_make(lladdr, OWN_PORT, own_gid6, KIP_ADDR_RC);
	else
		own_ipv4(lladdr);
	skb->sk = sk;
	ret = kip_loop_is_own(skb, lladdr, NET);
	skb->sk = NULL;
	kfree_skb(skb);
	return ret;
}

static void either_port_tells(struct kunit *test)
{
	struct packet p = own_packet();

	KUNIT_EXPECT_TRUE(test, is_own(test, &p, NULL));
	p.sport = OTHER_PORT;
	p.dport = OWN_PORT;
	KUNIT_EXPECT_TRUE(test, is_own(test, &p, NULL));
	p.dport = OWN_PORT - 1;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
}

static void only_the_own_address_counts(struct kunit *test)
{
	struct packet p = own_packet();

	p.saddr = OTHER_IPV4;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
	p.saddr6 = other_gid6;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
}

static void only_tcp_counts(struct kunit *test)
{
	struct packet p = own_packet();

	p.protocol = IPPROTO_UDP;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
	p.saddr6 = own_gid6;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
	p = own_packet();
	p.type = ETH_P_ARP;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
}

/* Only the first fragment has ports */
static void later_fragments_have_no_ports(struct kunit *test)
{
	struct packet p = own_packet();

	p.frag_off = IP_MF;
	KUNIT_EXPECT_TRUE(test, is_own(test, &p, NULL));
	p.frag_off = IP_DF;
	KUNIT_EXPECT_TRUE(test, is_own(test, &p, NULL));
	p.frag_off = IP_MF | 1;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
	p.frag_off = IP_OFFSET;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
}

static void options_precede_the_ports(struct kunit *test)
{
	struct packet p = own_packet();

	for (p.options = 0; p.options <= 40; p.options += 4)
		KUNIT_EXPECT_TRUE(test, is_own(test, &p, NULL));
}

static void truncated_headers_are_not_read(struct kunit *test)
{
	struct packet p = own_packet();

	for (p.cut = 1; p.cut <= sizeof(struct iphdr) + PORTS; p.cut++)
		KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
	p.saddr6 = own_gid6;
	for (p.cut = 1; p.cut <= sizeof(struct ipv6hdr) + PORTS; p.cut++)
		KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
}

static void segments_of_ipv6_are_recognized(struct kunit *test)
{
	struct packet p = own_packet();

	p.saddr6 = own_gid6;
	KUNIT_EXPECT_TRUE(test, is_own(test, &p, NULL));
	p.sport = OTHER_PORT;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
	p.dport = OWN_PORT;
	KUNIT_EXPECT_TRUE(test, is_own(test, &p, NULL));
}

static struct sock *make_sock(struct kunit *test, int family)
{
	struct sock *sk = kunit_kzalloc(test, sizeof(*sk), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sk);
	sk->sk_family = family;
	sk->sk_state = TCP_ESTABLISHED;
	sk->sk_protocol = IPPROTO_TCP;
	sk->sk_num = OWN_PORT;
	sk->sk_dport = htons(OTHER_PORT);
	if (family == AF_INET) {
		sk->sk_rcv_saddr = htonl(OWN_IPV4);
		sk->sk_daddr = htonl(OTHER_IPV4);
		return sk;
	}
#if IS_ENABLED(CONFIG_IPV6)
	memcpy(&sk->sk_v6_rcv_saddr, own_gid6, sizeof(own_gid6));
	memcpy(&sk->sk_v6_daddr, other_gid6, sizeof(other_gid6));
#endif
	return sk;
}

/* A tunnel has put another header in front */
static struct packet tunnelled(void)
{
	struct packet p = own_packet();

	p.saddr = OTHER_IPV4;
	p.protocol = IPPROTO_UDP;
	return p;
}

static void behind_a_tunnel_the_socket_tells(struct kunit *test)
{
	const struct packet p = tunnelled();
	struct sock *sk = make_sock(test, AF_INET);

	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
	KUNIT_EXPECT_TRUE(test, is_own(test, &p, sk));
	sk->sk_num = OTHER_PORT;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, sk));
	sk->sk_dport = htons(OWN_PORT);
	KUNIT_EXPECT_TRUE(test, is_own(test, &p, sk));
	sk->sk_rcv_saddr = htonl(OTHER_IPV4);
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, sk));
}

static void only_full_sockets_of_tcp_tell(struct kunit *test)
{
	const struct packet p = tunnelled();
	struct sock *sk = make_sock(test, AF_INET);

	sk->sk_protocol = IPPROTO_UDP;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, sk));
	sk->sk_protocol = IPPROTO_TCP;
	sk->sk_state = TCP_TIME_WAIT;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, sk));
	sk->sk_state = TCP_NEW_SYN_RECV;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, sk));
}

static void sockets_of_ipv6_tell(struct kunit *test)
{
	const struct packet p = tunnelled();

	if (!IS_ENABLED(CONFIG_IPV6))
		kunit_skip(test, "no IPv6");
	KUNIT_EXPECT_TRUE(test, is_own(test, &p, make_sock(test, AF_INET6)));
}

/* A socket of another flow does not hide what the packet's own header says */
static void the_header_counts_whatever_the_socket(struct kunit *test)
{
	const struct packet p = own_packet();
	struct sock *sk = make_sock(test, AF_INET);

	sk->sk_rcv_saddr = htonl(OTHER_IPV4);
	KUNIT_EXPECT_TRUE(test, is_own(test, &p, sk));
}

/* A segment of a connection that this end has made to a node with another port */
static struct packet to_peer(void)
{
	struct packet p = own_packet();

	p.sport = OTHER_PORT;
	p.dport = PEER_PORT;
	return p;
}

static void add_peer(struct kip_loop_end *end, const struct net *net, const u8 *gid6)
{
	u8 lladdr[KIP_ADDR_LEN];
	u8 gid[16];

	kip_addr_gid_of_ipv4(gid, htonl(OTHER_IPV4));
	kip_addr_make(lladdr, PEER_PORT, gid6 ?: gid, KIP_ADDR_RC);
	kip_loop_add(end, net, lladdr);
}

static void segments_to_another_port_are_recognized(struct kunit *test)
{
	struct kip_loop_end first = { }, second = { };
	struct packet p = to_peer();

	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
	add_peer(&first, NET, NULL);
	KUNIT_EXPECT_TRUE(test, is_own(test, &p, NULL));
	p.dport = PEER_PORT + 1;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
	p = to_peer();
	p.saddr = OTHER_IPV4;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
	/* A connection that is given up, and the one that follows it */
	p = to_peer();
	add_peer(&second, NET, NULL);
	kip_loop_del(&first);
	KUNIT_EXPECT_TRUE(test, is_own(test, &p, NULL));
	kip_loop_del(&second);
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
	kip_loop_del(&second);
}

static void connections_of_other_namespaces_do_not_count(struct kunit *test)
{
	struct kip_loop_end end = { };
	const struct packet p = to_peer();

	add_peer(&end, NULL, NULL);
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
	kip_loop_del(&end);
}

static void connections_over_ipv6_count(struct kunit *test)
{
	struct kip_loop_end end = { };
	struct packet p = to_peer();

	p.saddr6 = own_gid6;
	add_peer(&end, NET, other_gid6);
	KUNIT_EXPECT_TRUE(test, is_own(test, &p, NULL));
	p.saddr6 = NULL;
	KUNIT_EXPECT_FALSE(test, is_own(test, &p, NULL));
	kip_loop_del(&end);
}

static void behind_a_tunnel_the_socket_tells_another_port(struct kunit *test)
{
	static const int families[] = { AF_INET, AF_INET6 };
	const struct packet p = tunnelled();
	unsigned int i;

	for (i = 0; i < (IS_ENABLED(CONFIG_IPV6) ? 2 : 1); i++) {
		struct sock *sk = make_sock(test, families[i]);
		struct kip_loop_end end = { };

		sk->sk_num = OTHER_PORT;
		sk->sk_dport = htons(PEER_PORT);
		KUNIT_EXPECT_FALSE(test, is_own(test, &p, sk));
		add_peer(&end, NET, families[i] == AF_INET ? NULL : other_gid6);
		KUNIT_EXPECT_TRUE(test, is_own(test, &p, sk));
		kip_loop_del(&end);
	}
}

/* The port mapper may have chosen both ports of a connection: those of any socket without a file */
static void with_the_port_mapper_sockets_of_the_kernel_count(struct kunit *test)
{
	static const int families[] = { AF_INET, AF_INET6 };
	const struct packet p = tunnelled();
	unsigned int i;

	for (i = 0; i < (IS_ENABLED(CONFIG_IPV6) ? 2 : 1); i++) {
		struct socket *sock = kunit_kzalloc(test, sizeof(*sock), GFP_KERNEL);
		struct sock *sk = make_sock(test, families[i]);
		struct kip_loop_end end = { };

		KUNIT_ASSERT_NOT_NULL(test, sock);
		sk->sk_num = OTHER_PORT;
		sk->sk_dport = htons(OTHER_PORT);
		add_peer(&end, NET, families[i] == AF_INET ? NULL : other_gid6);
		/* Accepted by nobody yet, or closed */
		KUNIT_EXPECT_FALSE(test, is_own(test, &p, sk));
		sk->sk_socket = sock;
		KUNIT_EXPECT_TRUE(test, is_own(test, &p, sk));
		/* Not looked into */
		sock->file = (struct file *)sock;
		KUNIT_EXPECT_FALSE(test, is_own(test, &p, sk));
		sock->file = NULL;
		KUNIT_EXPECT_TRUE(test, is_own(test, &p, sk));
		kip_loop_del(&end);
		KUNIT_EXPECT_FALSE(test, is_own(test, &p, sk));
		/* In another namespace, and to another node */
		add_peer(&end, NULL, families[i] == AF_INET ? NULL : other_gid6);
		KUNIT_EXPECT_FALSE(test, is_own(test, &p, sk));
		kip_loop_del(&end);
		add_peer(&end, NET, own_gid6);
		KUNIT_EXPECT_FALSE(test, is_own(test, &p, sk));
		kip_loop_del(&end);
	}
}

static void expect_addr(struct kunit *test, const char *text, const union kip_sockaddr *want)
{
	union kip_sockaddr got;
	int ret;

	memset(&got, 0xa5, sizeof(got));
	ret = kip_sockaddr_parse(&got, text, OWN_PORT);
	KUNIT_EXPECT_EQ_MSG(test, ret, want->sa.sa_family ? 0 : -EINVAL, "%s", text);
	KUNIT_EXPECT_MEMEQ_MSG(test, &got, want, sizeof(got), "%s", text);
}

static void addresses_are_parsed(struct kunit *test)
{
	static const char * const bad[] = {
		"", "\n", "10.0.0.1x", "10.0.0.1\n\n", "10.0.0", "::ffff:10.0.0.1", "fd77::2 ",
		"fd77",
	};
	union kip_sockaddr want = {};
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		expect_addr(test, bad[i], &want);
	want.v4 = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_port = htons(OWN_PORT),
		.sin_addr.s_addr = htonl(OWN_IPV4),
	};
	expect_addr(test, "10.77.0.1", &want);
	expect_addr(test, "10.77.0.1\n", &want);
	memset(&want, 0, sizeof(want));
	want.v6 = (struct sockaddr_in6) {
		.sin6_family = AF_INET6,
		.sin6_port = htons(OWN_PORT),
		.sin6_addr.s6_addr = { 0xfd, 0x77, [15] = 2 },
	};
	expect_addr(test, "fd77::2", &want);
	expect_addr(test, "fd77::2\n", &want);
}

static struct kunit_case kip_loop_cases[] = {
	KUNIT_CASE(either_port_tells),
	KUNIT_CASE(only_the_own_address_counts),
	KUNIT_CASE(only_tcp_counts),
	KUNIT_CASE(later_fragments_have_no_ports),
	KUNIT_CASE(options_precede_the_ports),
	KUNIT_CASE(truncated_headers_are_not_read),
	KUNIT_CASE(segments_of_ipv6_are_recognized),
	KUNIT_CASE(behind_a_tunnel_the_socket_tells),
	KUNIT_CASE(only_full_sockets_of_tcp_tell),
	KUNIT_CASE(sockets_of_ipv6_tell),
	KUNIT_CASE(the_header_counts_whatever_the_socket),
	KUNIT_CASE(segments_to_another_port_are_recognized),
	KUNIT_CASE(connections_of_other_namespaces_do_not_count),
	KUNIT_CASE(connections_over_ipv6_count),
	KUNIT_CASE(behind_a_tunnel_the_socket_tells_another_port),
	KUNIT_CASE(with_the_port_mapper_sockets_of_the_kernel_count),
	KUNIT_CASE(addresses_are_parsed),
	{}
};

static struct kunit_suite kip_loop_suite = {
	.name = "kiwarp_ip_loop",
	.test_cases = kip_loop_cases,
};

kunit_test_suite(kip_loop_suite);
