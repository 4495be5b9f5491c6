/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Before 7.2 IPv6 could be a module, whose functions are reached through the table that the
 * kernel's header of this name declares. The kernel's own directories come first on the include
 * path, so those kernels never see this file. Newer ones have no such header.
 */
#ifndef KIW_COMPAT_NET_IPV6_STUBS_H
#define KIW_COMPAT_NET_IPV6_STUBS_H

#define KIW_COMPAT_NO_IPV6_STUB

#endif /* KIW_COMPAT_NET_IPV6_STUBS_H */
