#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: kiwarp_ip over another driver: packets of all kinds and sizes over siw
# TIMEOUT: 300
# CHECK-KERNELS: uml
# CHECK-PAIRS: uml
# TOPOLOGY: pair
KIW_LINK_TYPE=siw
# shellcheck source=scripts/selftests/ip/500-ip.sh
. "$(dirname "$0")/500-ip.sh"
