#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: regions of dma-bufs
# TIMEOUT: 60
# KERNELS: uml uml-debug 6.12
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/verbs.sh
. "$SELFTESTS/verbs.sh"

# The exporter of these is udmabuf, which 6.1 of the distribution does not have.
{ load_kiwarp && topo_up 1500 && rdma_up && modprobe kiwarp_exporter; } || bail "no two hosts"
verbs_cases dmabuf_errors dmabuf
# Of these it is a module of the tests.
verbs_cases dmabuf_limits dmabuf_read_only dmabuf_memlock
t_run "unload the exporter" modprobe -r kiwarp_exporter
rdma_down
# What only this type has; the program knows its driver id.
KIW_LINK_TYPE=kiwarp-ext
rdma_up || bail "no devices of the type kiwarp-ext"
for case in atomic sum windows; do t_run "kiwarp-ext: $case" "$PROGRAMS/dmabuf" "$case"; done
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
