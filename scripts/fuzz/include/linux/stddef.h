/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What proto/ takes from the kernel's header of this name, in user space. */
#include <stddef.h>
