#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: faults of the kernel around the driver: those that KIW_FAULTS names are provoked
# TIMEOUT: 120
# ONLY-WITH: KIW_FAULTS
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

# See Documentation/kernel-faults.rst. A case fails where the kernel has the fault, if it does not
# end the guest; hence scripts/selftests/kernel-faults, which boots one for each. The driver is
# siw, which does nothing about them, or that of KIW_FAULTS_DRIVER.
KIW_LINK_TYPE=${KIW_FAULTS_DRIVER:-siw}

# Both have the same driver id, by which the core chooses the devices that go with the module.
siw_unload() {
	local status=0
	modprobe kiwarp && modprobe siw && ip link add faultx type dummy &&
		rdma link add kiwx type kiwarp netdev faultx && modprobe -r siw || return 1
	rdma link show kiwx/1 || { echo "kiwx went with siw"; status=1; }
	ip link del faultx
	modprobe -r kiwarp
	return "$status"
}

# provoke FAULT: the first two need calls that librdmacm does not make.
provoke() {
	case $1 in
	destroy-unread | migrate-unread) "$PROGRAMS/attack" case "$1" ;;
	*) KIW_LINK_TYPE=$KIW_LINK_TYPE "$PROGRAMS/corefaults" "$1" ;;
	esac
}

if [ "$KIW_FAULTS" = siw-unload ]; then
	t_run siw-unload siw_unload
	done_testing
fi
{ load_module "$KIW_LINK_TYPE" && topo_up 1500 && rdma_up; } || bail "no two hosts"
for fault in $KIW_FAULTS; do t_run "$fault" provoke "$fault"; done
# Objects that a fault has left behind may hold the devices forever.
[ "$T_FAILED" = 0 ] || done_testing
rdma_down
topo_down
t_run "unload" unload_module "$KIW_LINK_TYPE"
done_testing
