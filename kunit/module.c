// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Module information of kiwarp_kunit.ko; its suites register themselves. */
#include <linux/module.h>

MODULE_DESCRIPTION("KUnit tests of kiwarp's protocol code");
MODULE_AUTHOR("The kiwarp authors");
MODULE_LICENSE("Dual BSD/GPL");
