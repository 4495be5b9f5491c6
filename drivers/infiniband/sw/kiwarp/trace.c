// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Instantiates the trace events of trace.h. */
#include <linux/types.h>

#define CREATE_TRACE_POINTS
#include "trace.h"
