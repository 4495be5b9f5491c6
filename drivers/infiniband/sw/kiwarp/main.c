// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kiwarp: iWARP in software, on top of network interfaces.
 *
 * Module init and exit: sets up what must exist before the first device and may be freed
 * only after the last one. `rdma link add` creates devices (netlink.c). Module exit removes
 * those that are left (device.c).
 */
#include <linux/module.h>
#include <rdma/rdma_netlink.h>

#include "device.h"
#include "mem/umem.h"
#include "netlink.h"
#include "tx/tx_loan.h"
#include "tx/txpool.h"

static int __init kiw_init(void)
{
	int ret;

	kiw_txpool_module_init();
	ret = kiw_device_module_init();
	if (ret)
		return ret;
	kiw_netlink_init();
	return 0;
}

static void __exit kiw_exit(void)
{
	kiw_netlink_uninit();
	kiw_device_module_exit();
	/* All QPs are gone, so the transmit engine no longer uses its pages */
	kiw_txpool_module_exit();
	kiw_loan_module_exit();
	kiw_umem_module_exit();
}

module_init(kiw_init);
module_exit(kiw_exit);

MODULE_DESCRIPTION("Software iWARP RDMA driver");
MODULE_AUTHOR("The kiwarp authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KIWARP_VERSION);
MODULE_ALIAS_RDMA_LINK("kiwarp");
MODULE_ALIAS_RDMA_LINK("kiwarp-ext");
