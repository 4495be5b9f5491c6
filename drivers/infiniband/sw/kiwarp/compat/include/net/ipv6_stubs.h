/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Stands in for a header that 7.2 removed. Before, IPv6 could be a module, and the kernel's header
 * of this name declares the table through which its functions are reached. The kernel's own
 * directories come first on the include path, so kernels that have the header never see this file.
 */
#ifndef KIW_COMPAT_NET_IPV6_STUBS_H
#define KIW_COMPAT_NET_IPV6_STUBS_H

#define KIW_COMPAT_NO_IPV6_STUB

#endif /* KIW_COMPAT_NET_IPV6_STUBS_H */
