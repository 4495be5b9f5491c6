#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip without CRC: packets of all kinds and sizes
# TIMEOUT: 300
# CHECK-KERNELS: uml
# CHECK-PAIRS: none
# TOPOLOGY: any
KIW_CRC=n
# shellcheck source=scripts/selftests/ip/500-ip.sh
. "$(dirname "$0")/500-ip.sh"
