/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* User space replacement for the kernel header of this name, as far as proto/ needs it. */
#include <stddef.h>
