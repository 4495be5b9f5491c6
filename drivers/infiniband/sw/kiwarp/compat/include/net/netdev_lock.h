/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What kernels before 6.15 have in <linux/netdevice.h>. The kernel's own directories come first on
 * the include path, so newer ones never see this file.
 */
#ifndef KIW_COMPAT_NET_NETDEV_LOCK_H
#define KIW_COMPAT_NET_NETDEV_LOCK_H

#include <linux/netdevice.h>

#endif /* KIW_COMPAT_NET_NETDEV_LOCK_H */
