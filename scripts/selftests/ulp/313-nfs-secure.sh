#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: NFS/RDMA with Kerberos: users, integrity, encryption; a soft mount
# TIMEOUT: 120
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml
# shellcheck disable=SC2015,SC2119 # meant so; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"
# shellcheck source=scripts/selftests/lib/rc-nfs
. "$SELFTESTS/rc-nfs"
# shellcheck source=scripts/selftests/lib/capture.sh
. "$SELFTESTS/capture.sh"

REALM=KIW.TEST
KDC=$T_DIR/kdc
TICKETS=$T_DIR/tickets
export KRB5_CONFIG=$T_DIR/krb5.conf KRB5_KDC_PROFILE=$T_DIR/kdc.conf
# A user with a ticket, and one without
USER_ID=1234
OTHER_ID=1235
SECRET=kiwarp-this-is-a-secret
PIPEFS_A=/run/rpc_pipefs_a
GSS_MODULES="auth_rpcgss rpcsec_gss_krb5"

# --- the realm, on b ------------------------------------------------------------------

configure() {
	cat >"$KRB5_CONFIG" <<-END
	[libdefaults]
	default_realm = $REALM
	dns_lookup_realm = false
	dns_lookup_kdc = false
	rdns = false
	[realms]
	$REALM = {
		kdc = $B4
	}
	[domain_realm]
	.kiw.test = $REALM
	END
	cat >"$KRB5_KDC_PROFILE" <<-END
	[kdcdefaults]
	kdc_listen = $B4
	kdc_tcp_listen = ""
	[realms]
	$REALM = {
		database_name = $KDC/principal
		key_stash_file = $KDC/stash
		supported_enctypes = aes256-cts-hmac-sha1-96:normal
	}
	END
	# The names of both hosts, and what user the server takes a principal for
	printf '%s client.kiw.test\n%s server.kiw.test\n' "$A4" "$B4" >>/etc/hosts
	printf '[General]\nDomain = kiw.test\nLocal-Realms = %s\n' "$REALM" >/etc/idmapd.conf
	printf 'kim:x:%s:%s::/:/bin/sh\n' "$USER_ID" "$USER_ID" >>/etc/passwd
}

# Keys of the server, the client and the user are in one file, because this is one guest.
realm() {
	mkdir -m 700 "$KDC" && mkdir -m 1777 "$TICKETS" && chmod 755 "$T_DIR" && configure &&
		kdb5_util create -s -W -r "$REALM" -P master &&
		kadmin.local -q "addprinc -randkey nfs/server.kiw.test" &&
		kadmin.local -q "addprinc -randkey nfs/client.kiw.test" &&
		kadmin.local -q "addprinc -pw secret kim" &&
		kadmin.local -q "ktadd -k /etc/krb5.keytab nfs/server.kiw.test nfs/client.kiw.test" &&
		spawn kdc b krb5kdc -n && wait_for 20 kdc_answers || { spawn_log kdc; kdc_answers; return 1; }
}

kdc_answers() { echo secret | on_a kinit -c "$T_DIR/first" kim; }

# --- server and client ----------------------------------------------------------------

serve() {
	local m
	for m in $GSS_MODULES; do modprobe "$m" || return 1; done
	nfs_serve && on_b exportfs -o rw,insecure,fsid=0,no_subtree_check,sec=sys:krb5:krb5i:krb5p \
		"*:$NFS_EXPORT" && chmod 1777 "$NFS_EXPORT" || return 1
	spawn svcgssd b rpc.svcgssd -f -vv -p nfs/server.kiw.test
	mkdir -p "$PIPEFS_A" && on_a mount -t rpc_pipefs rpc_pipefs "$PIPEFS_A" &&
		spawn gssd a rpc.gssd -f -vv -p "$PIPEFS_A" -d "$TICKETS" -k /etc/krb5.keytab
}

end() {
	spawn_stop gssd
	spawn_stop svcgssd
	spawn_stop kdc
	umount "$PIPEFS_A"
	nfs_end
}

# as ID CMD...: as this user, on the client
as() {
	local id=$1
	shift
	on_a setpriv --reuid "$id" --regid "$id" --clear-groups "$@"
}

ticket() {
	echo secret | as "$USER_ID" kinit -c "FILE:$TICKETS/krb5cc_$USER_ID" kim &&
		as "$USER_ID" klist -c "FILE:$TICKETS/krb5cc_$USER_ID"
}

# The server knows who writes; who has no ticket cannot even read.
identified() {
	{ nfs_mount "vers=4.2,sec=$1" && nfs_is_rdma && grep " $NFS_MNT .*sec=$1[, ]" /proc/mounts; } ||
		{ tail -n 20 "$T_DIR"/{svcgssd,gssd}.log; return 1; }
	head -c 300000 /dev/urandom >"$T_DIR/data" && chmod 644 "$T_DIR/data"
	as "$USER_ID" cp "$T_DIR/data" "$NFS_MNT/of-$1" &&
		[ "$(stat -c %u "$NFS_EXPORT/of-$1")" = "$USER_ID" ] &&
		cmp "$T_DIR/data" "$NFS_EXPORT/of-$1" && nfs_umount && nfs_mount "vers=4.2,sec=$1" &&
		as "$USER_ID" cmp "$T_DIR/data" "$NFS_MNT/of-$1" &&
		refused 'Permission denied' '' as "$OTHER_ID" cat "$NFS_MNT/of-$1"
}

# sent FLAVOR: a file is written and read; PCAP has what went over the cable.
sent() {
	local status=0
	capture_only "tcp port $NFS_PORT or tcp port $MARK" || return 1
	as "$USER_ID" bash -c "for ((n = 0; n < 2000; n++)); do echo $SECRET; done >$NFS_MNT/secret" &&
		nfs_remount "vers=4.2,sec=$1" && as "$USER_ID" cat "$NFS_MNT/secret" >"$T_DIR/back" &&
		[ "$(grep -c -x "$SECRET" "$T_DIR/back")" = 2000 ] && nfs_umount || status=1
	capture_end && return "$status"
}

seen() { grep -q -a "$SECRET" "$PCAP"; }

clear_with_integrity() { sent krb5i && seen; }
encrypted() { sent krb5p && must_fail seen; }

# --- a soft mount -----------------------------------------------------------------------

drop() {
	on_b nft "add table inet kiw; add chain inet kiw in { type filter hook input priority 0; };
		add rule inet kiw in tcp dport $NFS_PORT drop"
}

# While the server is silent, an operation fails with an error of its own after timeo and retrans;
# with the server back, the same mount works.
soft() {
	local status=0
	nfs_mount vers=4.2,soft,timeo=20,retrans=1 && echo first >"$NFS_MNT/soft" && drop || return 1
	refused 'Connection timed out|Input/output error|not responding' '' \
		timeout $((100 * ${KIW_SLOW:-1})) cat "$NFS_MNT/another" || status=1
	on_b nft delete table inet kiw
	wait_for 60 grep -q first "$NFS_MNT/soft" && echo second >"$NFS_MNT/soft" &&
		grep second "$NFS_EXPORT/soft" || status=1
	nfs_umount && return "$status"
}

{ load_kiwarp && topo_up && rdma_up; } || bail "no two hosts"
t_run "a realm of Kerberos" realm
t_run "a server" serve
t_run "a user's ticket" ticket
t_run "krb5: users are identified" identified krb5
nfs_umount
t_run "krb5i: users are identified" identified krb5i
t_run "krb5i: data is sent in clear" clear_with_integrity
t_run "krb5p: users are identified" identified krb5p
t_run "krb5p: data is encrypted" encrypted
t_run "a soft mount gives up, and works again" soft
t_run "the server ends" end
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
