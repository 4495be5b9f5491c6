/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The user ABI of the stock `rxe` provider; Documentation/uapi.rst has the rules. */
#ifndef KIW_UAPI_RXE_H
#define KIW_UAPI_RXE_H

#include "uapi.h"

extern const struct kiw_uapi_ops kiw_uapi_rxe;

#endif /* KIW_UAPI_RXE_H */
