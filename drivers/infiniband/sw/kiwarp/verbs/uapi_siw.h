/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The user ABI of the stock `siw` provider; Documentation/uapi.rst has the rules. */
#ifndef KIW_UAPI_SIW_H
#define KIW_UAPI_SIW_H

#include "uapi.h"

extern const struct kiw_uapi_ops kiw_uapi_siw;

#endif /* KIW_UAPI_SIW_H */
