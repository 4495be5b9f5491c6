#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: RDS refuses iWARP devices, as Documentation/ulp/rds.rst says
# TIMEOUT: 60
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"

# rds_bind [TRANSPORT]: binds an RDS socket to a's address, with SO_RDS_TRANSPORT of SOL_RDS if
# TRANSPORT is given; prints "bound" or the errno's name
RDS_TRANS_IB=0
rds_bind() {
	on_a python3 - "$A4" "$@" <<-'END'
	import errno, socket, struct, sys
	sock = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET)
	try:
	    if len(sys.argv) > 2:
	        sock.setsockopt(276, 8, struct.pack("i", int(sys.argv[2])))
	    sock.bind((sys.argv[1], 4000))
	    print("bound")
	except OSError as error:
	    print(errno.errorcode[error.errno])
	END
}

# says WHAT [TRANSPORT]
says() {
	local said
	said=$(rds_bind "${@:2}")
	[ "$said" = "$1" ] || { echo "$said instead of $1"; return 1; }
}

ulp_up rds rds_rdma || bail "no two hosts"
t_run "RDS that asks for RDMA: refused" says ENOPROTOOPT "$RDS_TRANS_IB"
t_run "RDS that asks for nothing: no transport" says EADDRNOTAVAIL
ulp_down
done_testing
