#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: the program of kiwarp@.service: devices with settings from files, and refusals
# TIMEOUT: 60
# CHECK-KERNELS: uml
# DMESG-ALLOW: kiwarp: .* must be
# shellcheck disable=SC2086,SC2119,SC2317 # words; no arguments meant; t_run calls them
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

LINK="sh /host/packaging/kiwarp-link"
export KIWARP_CONF_DIR=$T_DIR/conf
CONF=$KIWARP_CONF_DIR/$NETDEV.conf
SYS=/sys/class/infiniband
mkdir "$KIWARP_CONF_DIR"

# link VERB: runs kiwarp-link on host a
link() { on_a $LINK "$1" "$NETDEV"; }

policy() { cat "$SYS/$1/policy/$2"; }

# conf LINE...: writes the configuration file
conf() { printf '%s\n' "$@" >"$CONF"; }

defaults() {
	rm -f "$CONF"
	link add && [ "$(policy "kiw-$NETDEV" crc)" = Y ] && rdma_is_active a "kiw-$NETDEV" &&
		link delete && [ ! -e "$SYS/kiw-$NETDEV" ]
}

# Blanks, comments, an end without a newline; a setting with several words
settings() {
	printf '# sample\n\n\tname=kiwx\n crc = n\t\nrtr =  send write\nmax_half_open = 7' >"$CONF"
	link add && [ "$(policy kiwx crc)" = N ] && [ "$(policy kiwx rtr)" = "send write" ] &&
		[ "$(policy kiwx max_half_open)" = 7 ] && [ "$(policy kiwx markers)" = N ]
}

# Only this type has memory windows.
extended() {
	conf 'name = kiwx' 'type = kiwarp-ext'
	link add && ibv_devinfo -v -d kiwx | grep -q 'max_mw:.*1048576' && link delete
}

# A second run only changes settings, as "set" does. Settings that are not in the file stay.
again() {
	conf 'name = other' 'markers = y'
	link add 2>"$T_DIR/said" && [ "$(policy kiwx markers)" = Y ] &&
		[ "$(policy kiwx crc)" = N ] && [ ! -e "$SYS/other" ] || return 1
	grep "$NETDEV already has the device kiwx" "$T_DIR/said" || return 1
	conf 'startup_ms = 500'
	link set && [ "$(policy kiwx startup_ms)" = 500 ]
}

# The device is found by its interface, even if it was renamed.
renamed() {
	rdma dev set kiwx name kiwy && link delete && [ ! -e "$SYS/kiwy" ] && link delete &&
		must_fail link set
}

# rename_netdev FROM TO
rename_netdev() { on_a ip link set "$1" down && on_a ip link set "$1" name "$2" && on_a ip link set "$2" up; }

# The device stays with an interface that was renamed. The unit of the new name takes it over.
renamed_netdev() {
	conf 'name = kiwx'
	link add && rename_netdev "$NETDEV" kiwnew || return 1
	link delete && [ -e "$SYS/kiwx" ] && printf 'name = kiwx\ncrc = n\n' >"$KIWARP_CONF_DIR/kiwnew.conf" &&
		on_a $LINK add kiwnew && [ "$(policy kiwx crc)" = N ] && on_a $LINK delete kiwnew &&
		[ ! -e "$SYS/kiwx" ]
	local status=$?
	rename_netdev kiwnew "$NETDEV" && return $status
}

# All files of the device can be set, and the sample names them all.
all_settings() {
	local name
	conf 'name = kiwx'
	link add || return 1
	for name in "$SYS"/kiwx/policy/*; do
		echo "${name##*/} = $(cat "$name")"
	done >>"$CONF"
	link delete && link add && link delete || return 1
	diff <(sed -n 's/^#\([a-z0-9_]*\) = .*/\1/p' /host/packaging/samples/eth0.conf | sort) \
		<(sed -n 's/ = .*//p' "$CONF" | grep -v '^name$' | sort)
}

# refused REGEX LINE...: a file with these lines is refused with that message, and no device exists
refused() {
	local regex=$1
	shift
	conf "$@"
	must_fail link add 2>"$T_DIR/said"
	local status=$?
	cat "$T_DIR/said"
	[ "$status" = 0 ] && grep -q -E "$regex" "$T_DIR/said" && [ ! -e "$SYS/kiwx" ]
}

# check_only REGEX LINE...: the file is checked, and nothing else happens
check_only() {
	local regex=$1
	shift
	conf "$@"
	must_fail link check 2>"$T_DIR/said"
	cat "$T_DIR/said"
	grep -q -E "$regex" "$T_DIR/said" || return 1
	conf 'name = kiwx' 'crc = n'
	link check && [ ! -e "$SYS/kiwx" ]
}

# no_file: a file that is there and cannot be read is not taken for none.
no_file() {
	rm -f "$CONF"
	"$@" "$CONF" || return 1
	must_fail link add && must_fail link check && [ ! -e "$SYS/kiw-$NETDEV" ] && rm -rf "$CONF"
}

# with_rdma FILE CMD...: CMD, and the programs that it starts, get FILE in place of rdma.
# shellcheck disable=SC2016 # for the inner shell
with_rdma() {
	unshare -m bash -c 'mount --bind "$1" "$(command -v rdma)" && shift && exec "$@"' - "$@"
}

# Whoever cannot see the device cannot say that it is gone.
rdma_fails() {
	rm -f "$CONF"
	link add && must_fail with_rdma /bin/false $LINK delete "$NETDEV" && [ -e "$SYS/kiw-$NETDEV" ] &&
		link delete
}

# Stopped when the device is there and its settings are not
# shellcheck disable=SC2016 # for the shell of the file
stopped() {
	local rdma
	rdma=$(command -v rdma) && cp "$rdma" "$T_DIR/rdma" || return 1
	printf '#!/bin/sh\n%s "$@" || exit 1\n[ "$2" != add ] || { : >%s; read -r go <%s; }\n' \
		"$T_DIR/rdma" "$T_DIR/added" "$T_DIR/go" >"$T_DIR/slow" &&
		chmod 755 "$T_DIR/slow" && mkfifo "$T_DIR/go" && conf 'crc = n' || return 1
	spawn add a unshare -m bash -c "mount --bind '$T_DIR/slow' '$rdma' && exec $LINK add '$NETDEV'"
	wait_for 20 [ -e "$T_DIR/added" ] && [ -e "$SYS/kiw-$NETDEV" ] || return 1
	kill "$(cat "$T_DIR/add.pid")"
	echo >"$T_DIR/go"
	spawn_wait add 20
	[ $? = 143 ] && [ ! -e "$SYS/kiw-$NETDEV" ]
}

# The module is there, and does not load.
not_loaded() {
	local status=0
	rm -f "$CONF"
	echo 'options kiwarp crc=maybe' >/etc/modprobe.d/kiwarp-056.conf
	must_fail link add 2>"$T_DIR/said" || status=1
	rm /etc/modprobe.d/kiwarp-056.conf
	cat "$T_DIR/said"
	grep -q 'kernel: .*crc must be y or n' "$T_DIR/said" && grep -q 'cannot be loaded' "$T_DIR/said" &&
		must_fail grep 'no module' "$T_DIR/said" && return "$status"
}

misused() {
	must_fail $LINK && must_fail $LINK add && must_fail $LINK sing "$NETDEV" &&
		must_fail on_a $LINK add none0
}

load_kiwarp || bail "no module"
topo_up || bail "no network"
t_run "without a file" defaults
t_run "with a file" settings
t_run "a device that is there" again
t_run "a device that was renamed" renamed
t_run "an interface that was renamed" renamed_netdev
t_run "all settings there are" all_settings
t_run "another link type" extended
t_run "refused by the module" refused 'kernel: .*startup_ms must be a number from 100 to 60000' \
	'name = kiwx' 'startup_ms = 5'
t_run "several refused, each told" refused 'mpa_rev = 7 was refused' 'name = kiwx' 'crc = maybe' \
	'mpa_rev = 7'
t_run "no such type" refused ":2: there is no link type 'siw'" 'name = kiwx' 'type = siw'
t_run "no such setting" refused ":2: there is no setting 'speed'" 'name = kiwx' 'speed = high'
t_run "not a setting" refused ':1: not SETTING = VALUE: crc' 'crc' 'name = kiwx'
t_run "a setting twice" refused ":3: 'crc' is set twice" 'crc = y' 'name = kiwx' 'crc = n'
t_run "no value" refused ':2: not SETTING = VALUE' 'name = kiwx' 'crc ='
t_run "a bad name" refused 'kernel: .*bad device name' 'name = kiw/x'
t_run "the beginning of a word" refused 'crc = null was refused' 'name = kiwx' 'crc = null'
t_run "a backslash" refused "there is no setting 'crc.c junk'" 'crc\c junk = n' 'name = kiwx'
t_run "a link without a target" no_file ln -s /none
t_run "a directory" no_file mkdir
t_run "rdma fails" rdma_fails
t_run "stopped" stopped
t_run "check" check_only "no setting 'colour'" 'colour = red'
t_run "misused" misused
t_run "unload" unload_kiwarp
t_run "the module does not load" not_loaded
topo_down
done_testing
