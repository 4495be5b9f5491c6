// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The one place where the events of trace.h become code. */
#include <linux/types.h>

#define CREATE_TRACE_POINTS
#include "trace.h"
