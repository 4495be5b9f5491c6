// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Messages and datagrams of kiwarp_ip: RFC 4391 6, RFC 4755 4 and 7. */
#include "proto/msg.c"

#include "util.h"

#define PKEY	0xffff
#define QKEY	0x80000b1b

/* RFC 4391 6: the two octets after the type are ignored */
static void the_type_alone_decides(struct kunit *test)
{
	u8 data[16] = { 0x08, 0x00, 0xff, 0xff };

	KUNIT_EXPECT_EQ(test, kip_msg_classify(data, 24), KIP_MSG_DATA);
	data[0] = 0x86;
	data[1] = 0xdd;
	KUNIT_EXPECT_EQ(test, kip_msg_classify(data, 44), KIP_MSG_DATA);
	data[0] = 0x88;
	data[1] = 0xb5;
	KUNIT_EXPECT_EQ(test, kip_msg_classify(data, 12), KIP_MSG_CONTROL);
	KUNIT_EXPECT_EQ(test, kip_msg_classify(data, 11), KIP_MSG_SHORT);
}

/* RFC 4755 4 and 7: only IPv4 and IPv6, in particular no ARP */
static void every_other_type_is_refused(struct kunit *test)
{
	unsigned int type, others = 0;
	u8 data[16] = { 0 };

	for (type = 0; type < 0x10000; type++) {
		data[0] = type >> 8;
		data[1] = type;
		others += kip_msg_classify(data, 64) == KIP_MSG_BAD_TYPE;
		KUNIT_EXPECT_EQ(test, kip_msg_classify(data, 4), KIP_MSG_SHORT);
		KUNIT_EXPECT_EQ(test, kip_msg_classify(data, 0), KIP_MSG_SHORT);
	}
	KUNIT_EXPECT_EQ(test, others, 0x10000U - 3);
	data[0] = 0x08;
	data[1] = 0x06;
	KUNIT_EXPECT_EQ(test, kip_msg_classify(data, 64), KIP_MSG_BAD_TYPE);
}

static void control_messages_come_back(struct kunit *test)
{
	static const u8 golden[12] = { 0x88, 0xb5, 0, 0, 1, 0, 0, 0, 0x89, 0xab, 0xcd, 0xef };
	struct kip_wire_control wire;
	u32 value, len;
	u8 op, raw;

	kip_control_build(&wire, KIP_OP_GRANT, 0x89abcdef);
	KUNIT_EXPECT_MEMEQ(test, &wire, golden, sizeof(golden));
	for (raw = 0; raw < 255; raw++) {
		wire.op = raw;
		KUNIT_EXPECT_EQ(test, kip_control_parse(&wire, 12, &op, &value),
				raw >= 1 && raw <= 3);
		KUNIT_EXPECT_EQ(test, op, raw);
		KUNIT_EXPECT_EQ(test, value, 0x89abcdefU);
	}
	for (len = 0; len < 12; len++)
		KUNIT_EXPECT_FALSE(test, kip_control_parse(&wire, len, &op, &value));
}

/* RFC 4755 7: address resolution uses datagrams, other packets may use either way */
static void address_resolution_goes_by_datagram(struct kunit *test)
{
	u8 packet[41] = { [6] = 58 };
	unsigned int type, len;

	KUNIT_EXPECT_EQ(test, kip_msg_way(0x0806, packet, 28), KIP_WAY_DATAGRAM);
	KUNIT_EXPECT_EQ(test, kip_msg_way(0x8035, packet, 28), KIP_WAY_DATAGRAM);
	KUNIT_EXPECT_EQ(test, kip_msg_way(0x0800, packet, 41), KIP_WAY_ANY);
	KUNIT_EXPECT_EQ(test, kip_msg_way(0x88b5, packet, 41), KIP_WAY_NONE);
	KUNIT_EXPECT_EQ(test, kip_msg_way(0x8100, packet, 41), KIP_WAY_NONE);
	for (type = 0; type < 256; type++) {
		packet[40] = type;
		KUNIT_EXPECT_EQ(test, kip_msg_way(0x86dd, packet, 41),
				type >= 133 && type <= 137 ? KIP_WAY_DATAGRAM : KIP_WAY_ANY);
	}
	packet[40] = 135;
	for (len = 0; len <= 40; len++)
		KUNIT_EXPECT_EQ(test, kip_msg_way(0x86dd, packet, len), KIP_WAY_ANY);
	packet[6] = 17;
	KUNIT_EXPECT_EQ(test, kip_msg_way(0x86dd, packet, 41), KIP_WAY_ANY);
}

static void datagrams_come_back(struct kunit *test)
{
	static const u8 golden[12] = {
		0x01, 0, 0xff, 0xff, 0x80, 0, 0x0b, 0x1b, 0x08, 0x06, 0, 0,
	};
	static const u16 types[] = { 0x0800, 0x0806, 0x8035, 0x86dd };
	struct { struct kip_wire_dgram wire; u8 packet[4]; } d = { 0 };
	unsigned int i;
	bool to_group;
	u16 type;

	kip_dgram_build(&d.wire, 0x0806, PKEY, QKEY, true);
	KUNIT_EXPECT_MEMEQ(test, &d.wire, golden, sizeof(golden));
	for (i = 0; i < 2 * ARRAY_SIZE(types); i++) {
		kip_dgram_build(&d.wire, types[i / 2], PKEY, QKEY, i % 2);
		KUNIT_EXPECT_EQ(test, kip_dgram_parse(&d, 16, PKEY, QKEY, &type, &to_group),
				KIP_DGRAM_OK);
		KUNIT_EXPECT_EQ(test, type, types[i / 2]);
		KUNIT_EXPECT_EQ(test, to_group, i % 2 == 1);
	}
}

static enum kip_dgram parse_with(unsigned int at, u8 value, unsigned int len)
{
	u8 data[64];
	bool to_group;
	u16 type;

	memset(data, 0, sizeof(data));
	kip_dgram_build((struct kip_wire_dgram *)data, 0x0800, PKEY, QKEY, false);
	data[at] = value;
	return kip_dgram_parse(data, len, PKEY, QKEY, &type, &to_group);
}

static void bad_datagrams_have_their_reason(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i <= 12; i++)
		KUNIT_EXPECT_EQ(test, parse_with(0, 0, i), KIP_DGRAM_SHORT);
	KUNIT_EXPECT_EQ(test, parse_with(0, 0, 13), KIP_DGRAM_OK);
	for (i = 1; i < 16; i++)
		KUNIT_EXPECT_EQ(test, parse_with(0, i << 4, 64), KIP_DGRAM_BAD_VERSION);
	/* Unknown flags and reserved octets are ignored */
	KUNIT_EXPECT_EQ(test, parse_with(0, 0x0e, 64), KIP_DGRAM_OK);
	KUNIT_EXPECT_EQ(test, parse_with(1, 0xff, 64), KIP_DGRAM_OK);
	KUNIT_EXPECT_EQ(test, parse_with(10, 0xff, 64), KIP_DGRAM_OK);
	KUNIT_EXPECT_EQ(test, parse_with(11, 0xff, 64), KIP_DGRAM_OK);
	KUNIT_EXPECT_EQ(test, parse_with(2, 0x7f, 64), KIP_DGRAM_BAD_PKEY);
	KUNIT_EXPECT_EQ(test, parse_with(3, 0, 64), KIP_DGRAM_BAD_PKEY);
	for (i = 4; i < 8; i++)
		KUNIT_EXPECT_EQ(test, parse_with(i, 0x55, 64), KIP_DGRAM_BAD_QKEY);
	KUNIT_EXPECT_EQ(test, parse_with(8, 0x55, 64), KIP_DGRAM_BAD_TYPE);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(the_type_alone_decides),
	KUNIT_CASE(every_other_type_is_refused),
	KUNIT_CASE(control_messages_come_back),
	KUNIT_CASE(address_resolution_goes_by_datagram),
	KUNIT_CASE(datagrams_come_back),
	KUNIT_CASE(bad_datagrams_have_their_reason),
	{ }
};

static struct kunit_suite suite = {
	.name = "kiwarp_ip_msg",
	.test_cases = cases,
};

kunit_test_suite(suite);
