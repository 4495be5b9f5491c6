/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How a device makes connections: defaults are module parameters, checked when
 * they are set; a device takes a copy when it is added.
 */
#ifndef KIW_POLICY_H
#define KIW_POLICY_H

#include <linux/types.h>

/**
 * struct kiw_policy - connection policy of a device
 * @mpa_rev: highest MPA revision to speak, 1 or 2
 * @crc: ask for CRC; off only takes effect when the peer does not ask either
 * @p2p: initiator asks for peer-to-peer mode (revision 2)
 * @startup_ms: deadline of a whole connection startup, milliseconds
 * @max_half_open: connections in startup per listener beyond its backlog
 */
struct kiw_policy {
	u8 mpa_rev;
	bool crc;
	bool p2p;
	unsigned int startup_ms;
	unsigned int max_half_open;
};

void kiw_policy_defaults(struct kiw_policy *policy);

#endif /* KIW_POLICY_H */
