# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Shared by run.sh and pair.sh: prepares what a guest needs on the host, starts it,
# waits for it and evaluates its result. Source after lib.sh.
# shellcheck disable=SC2034,SC2054 # variables for others; commas of QEMU

# Variables that the options of run.sh and pair.sh set
G_KERNEL=uml
G_SMP=1
G_MEM=1024
G_TIMEOUT=120
G_MTU=9000
G_OFFLOAD=
G_PLUGIN=
G_PLUGIN_B=
G_OUT=
G_JOB=
G_KEEP=
G_THIRD=
G_ENV=()
G_MODULES=()
G_CMD=()

guest_usage() {
	die "usage: ${0##*/} [--kernel uml|uml-debug|uml-smp|uml-kcsan|uml-gcov|smp-debug|6.1|6.12|LINE[-MACHINE]]
	[--smp N] [--mem MB] [--timeout S] [--modules DIR]... [--job DIR] [--out DIR] [--env NAME=VALUE]...
	[--mtu N] [--keep] [--third] [--offload] [--plugin FILE] [--plugin-b FILE] -- CMD ARGS..."
}

guest_options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--keep) G_KEEP=1; shift; continue ;;
		--third) G_THIRD=1; shift; continue ;;
		--offload) G_OFFLOAD=1; shift; continue ;;
		--) shift; G_CMD=("$@"); break ;;
		esac
		[ $# -ge 2 ] || guest_usage
		case $1 in
		--kernel) G_KERNEL=$2 ;;
		--smp) G_SMP=$2 ;;
		--mem) G_MEM=$2 ;;
		--timeout) G_TIMEOUT=$2 ;;
		--modules) G_MODULES+=("$2") ;;
		--job) G_JOB=$2 ;;
		--out) G_OUT=$2 ;;
		--env) G_ENV+=("$2") ;;
		--mtu) G_MTU=$2 ;;
		--plugin) G_PLUGIN=$2 ;;
		--plugin-b) G_PLUGIN_B=$2 ;;
		*) guest_usage ;;
		esac
		shift 2
	done
	[ "${#G_CMD[@]}" -gt 0 ] || guest_usage
}

build_initrd() {
	local dir=$1 kernel=$2 root=$3 m
	mkdir -p "$dir/tree/bin" "$dir/tree/modules"
	cp "$root/busybox" "$dir/tree/bin/busybox"
	install -m 755 "$KIW_VM/guest/initrd-init" "$dir/tree/init"
	if [ -f "$kernel/boot-modules" ]; then
		while read -r m; do
			install -D "$kernel/modules/usr/lib/modules"/*/"$m" \
				"$dir/tree/modules/$m" || return 1
		done <"$kernel/boot-modules"
		cp "$kernel/boot-modules" "$dir/tree"
	fi
	(cd "$dir/tree" && find . | cpio -o -H newc --quiet -R 0:0) >"$dir/initrd" &&
		rm -rf "$dir/tree"
}

# load_kernel NAME: sets K_DIR, K_TYPE, K_RELEASE, K_BUILD, K_ARCH, K_ARGS, K_MACHINE, K_DEBIAN.
load_kernel() {
	K_MACHINE=amd64 K_DEBIAN='' K_ARGS=''
	K_DIR=$("$KIW_VM/kernel.sh" "$1") || die "no kernel $1"
	# shellcheck source=/dev/null
	. "$K_DIR/info"
	K_BUILD=$K_DIR/$K_BUILD
	case $1 in
	# 260-failing.sh lets the allocations of single slab caches fail. KASAN keeps caches apart, too.
	*-gcov) K_ARGS=slab_nomerge ;;
	# 070-lsm.sh loads a policy of SELinux. The other kernels of Debian have AppArmor.
	6.12) K_ARGS=security=selinux ;;
	esac
}

build_xstate() {
	gcc -Wall -O2 -shared -fPIC -o "$1/um-xstate.so" "$KIW_VM/um-xstate.c"
}

# xstate_library: prints the library that User Mode Linux needs on hosts with AMX, or nothing.
xstate_library() {
	local dir
	grep -qw amx_tile /proc/cpuinfo || return 0
	dir=$(cached xstate "$(content_key "$KIW_VM/um-xstate.c" "$(declare -f build_xstate)")" \
		build_xstate) && echo "$dir/um-xstate.so"
}

# use_emulator PACKAGE COMMAND: QEMU is this command of Debian 13
use_emulator() {
	local tree
	# shellcheck source=scripts/vm/debian.sh
	. "$KIW_VM/debian.sh"
	tree=$(emulator_of trixie "$1")/tree || return 1
	QEMU=("$tree/lib64/ld-linux-x86-64.so.2" --library-path "$tree/usr/lib/x86_64-linux-gnu"
		"$tree/usr/bin/$2" -L "$tree/usr/share/qemu")
}

# find_emulator: QEMU is this command. That of Debian 12, 7.2, miscalculates checksums for a kernel
# 6.12 on s390x. With several CPUs, one may execute what another has just overwritten, and a kernel
# that patches itself dies of "Oops: int3" (https://bugs.launchpad.net/bugs/2051965). This is far less
# frequent since 8.1.
find_emulator() {
	case $K_MACHINE in
	amd64)
		if [ "$G_SMP" -gt 1 ]; then
			use_emulator qemu-system-x86 qemu-system-x86_64
		else
			need_packages qemu-system-x86 && QEMU=(qemu-system-x86_64)
		fi
		;;
	arm64) need_packages qemu-system-arm && QEMU=(qemu-system-aarch64) ;;
	s390x) use_emulator qemu-system-s390x qemu-system-s390x ;;
	esac
}

# root_name: which file system of root.sh
root_name() {
	if [ "$K_MACHINE" = amd64 ]; then echo "${KIW_ROOT:-bookworm}"; else echo "$K_MACHINE"; fi
}

# guest_prepare: everything that all guests of this run share.
guest_prepare() {
	need_packages cpio kmod python3 || die "packages missing"
	load_kernel "$G_KERNEL"
	[ "$K_TYPE" = uml ] || find_emulator || die "no QEMU"
	R_DIR=$("$KIW_VM/root.sh" "$(root_name)") || die "no root image"
	I_DIR=$(cached initrd "$(content_key "$K_DIR" "$R_DIR" \
		"$KIW_VM/guest/initrd-init" "$(declare -f build_initrd)")" \
		build_initrd "$K_DIR" "$R_DIR") || die "no initrd"
	V_DIR=$("$KIW_TOP/scripts/verbs/build.sh" "$K_MACHINE") || die "no programs for guests"
	[ "$K_TYPE" != uml ] || X_LIB=$(xstate_library) || die "no library for the host's CPU"
	W=$(mktemp -d "$KIW_CACHE/run.XXXXXX") || die "no working directory"
}

# pack_extra_modules FILE DIR...: packs the modules in DIRs into FILE, with lists that depmod makes
# of them and of the image's modules. The guest lays the contents over the image.
pack_extra_modules() {
	local file=$1 stage=$W/stage top=$W/stage/lib/modules/$K_RELEASE
	shift
	mkdir -p "$top"
	cp -al "$K_DIR/modules/usr/lib/modules/$K_RELEASE/." "$top"
	rm -f "$top"/modules.{dep,alias,symbols,softdep,devname}*
	mkdir -p "$top/updates"
	find "$@" -name '*.ko' -exec cp -t "$top/updates" {} +
	depmod -b "$stage" "$K_RELEASE" 2>/dev/null || die "depmod failed"
	tar -cf "$file" -C "$top" updates modules.dep modules.dep.bin \
		modules.alias modules.alias.bin modules.symbols \
		modules.symbols.bin modules.softdep modules.devname
	rm -rf "$stage"
}

kernel_to_tests() {
	case $G_KERNEL in
	*-gcov | *-arm64 | *-s390x) echo "${G_KERNEL%-*}" ;;
	*) echo "$G_KERNEL" ;;
	esac
}

# guest_dir NAME HOST: the directories of one guest; HOST is a, b, c or nothing.
guest_dir() {
	local in=$W/$1/in v
	mkdir -p "$in/job" "$W/$1/out"
	cp "$KIW_VM"/guest/* "$in"
	cp -r "$KIW_TOP/scripts/selftests" "$KIW_TOP/scripts/peer" "$KIW_TOP/scripts/pyverbs" \
		"$KIW_TOP/scripts/fuzz" \
		"$KIW_TOP"/Documentation/{counters,security}.rst "$KIW_TOP/packaging" "$in"
	cp -r "$V_DIR" "$in/verbs"
	[ -z "$G_JOB" ] || cp -r "$G_JOB/." "$in/job"
	[ "${#G_MODULES[@]}" = 0 ] || pack_extra_modules "$in/modules.tar" "${G_MODULES[@]}"
	[ "$K_TYPE" = uml ] || : >"$in/modprobe-net"
	{
		# To tests, uml-gcov is uml, and 6.1-s390x is 6.1.
		printf 'export KIW_KERNEL=%q KIW_MACHINE=%q KIW_HOST=%q KIW_MTU=%q\n' \
			"$(kernel_to_tests)" "$K_MACHINE" "$2" "$G_MTU"
		# Another driver can stand in for ours, to try the test bed itself.
		[ -z "${KIW_LINK_TYPE:-}" ] || printf 'export KIW_LINK_TYPE=%q\n' "$KIW_LINK_TYPE"
		[ -z "$G_THIRD" ] || printf 'export KIW_THIRD=1\n'
		[ -z "${KIW_CRC:-}" ] || printf 'export KIW_CRC=%q\n' "$KIW_CRC"
		[ -z "${KIW_MARKERS:-}" ] || printf 'export KIW_MARKERS=%q\n' "$KIW_MARKERS"
		for v in "${G_ENV[@]}"; do printf 'export %q\n' "$v"; done
	} >"$in/env"
	: >"$W/$1/out/stdout"
}

# guest_command NAME CMD...: sets the command that the guest runs.
guest_command() {
	local in=$W/$1/in
	shift
	printf '%q ' "$@" >"$in/cmd"
	echo >>"$in/cmd"
}

uml_line() {
	LINE=(env ${X_LIB:+"LD_PRELOAD=$X_LIB"} "$K_DIR/kernel" "mem=${G_MEM}M" "uml_dir=$W/$1/" umid=uml
		"initrd=$I_DIR/initrd" "ubd0rc=$R_DIR/root.sqfs"
		"ubd1rc=$K_DIR/modules.sqfs" con=null con0=null,fd:1 ssl=null console=tty0
		loglevel=5 log_buf_len=4M "kiw.disk=ubd" "kiw.share=$W/$1" ${K_ARGS:+"$K_ARGS"})
	[ "$G_SMP" = 1 ] || LINE+=("ncpus=$G_SMP")
}

# device NAME[,OPTIONS]: NAME is virtio-NAME, on the bus of the machine
device() {
	local bus=pci
	[ "$K_MACHINE" != s390x ] || bus=ccw
	echo "virtio-${1%%,*}-$bus${1#"${1%%,*}"}"
}

# machine_line: the machine, its console, what its kernel is told
machine_line() {
	local tsc=
	case $K_MACHINE in
	amd64)
		# What emulates on its own (KIW_ACCEL) may have another counter.
		[ -n "${KIW_ACCEL:-}" ] || tsc=$("$KIW_VM/tsc.py")
		LINE=("${QEMU[@]}" -machine q35 -cpu Nehalem,+rdrand -serial stdio)
		APPEND="console=ttyS0 no_timer_check tsc=reliable $tsc mitigations=off random.trust_cpu=on"
		;;
	arm64)
		LINE=("${QEMU[@]}" -machine virt -cpu cortex-a72 -serial stdio)
		APPEND="console=ttyAMA0 mitigations=off"
		;;
	s390x)
		LINE=("${QEMU[@]}" -machine s390-ccw-virtio -cpu max -chardev stdio,id=c0
			-device sclpconsole,chardev=c0 -device virtio-rng-ccw)
		APPEND="console=ttysclp0"
		;;
	esac
}

qemu_line() {
	local APPEND
	machine_line
	LINE+=(-accel "${KIW_ACCEL:-tcg,thread=multi}" -smp "$G_SMP" -m "$G_MEM"
		-nodefaults -no-user-config -display none -no-reboot
		-kernel "$K_DIR/kernel" -initrd "$I_DIR/initrd"
		-append "$APPEND loglevel=5 panic=-1 nokaslr net.ifnames=0 log_buf_len=4M kiw.disk=vd kiw.share=9p${K_ARGS:+ $K_ARGS}"
		-drive "if=none,id=d0,file=$R_DIR/root.sqfs,format=raw,readonly=on"
		-device "$(device blk,drive=d0)"
		-drive "if=none,id=d1,file=$K_DIR/modules.sqfs,format=raw,readonly=on"
		-device "$(device blk,drive=d1)"
		-fsdev "local,id=f0,path=$W/$1/in,security_model=none,readonly=on"
		-device "$(device 9p,fsdev=f0,mount_tag=in)"
		-fsdev "local,id=f1,path=$W/$1/out,security_model=none"
		-device "$(device 9p,fsdev=f1,mount_tag=out)")
}

# guest_start NAME ARGS...: starts the guest in the background, with ARGS added to its command line.
# GUEST_PID is the process of timeout, which limits its time.
guest_start() {
	local name=$1
	shift
	if [ "$K_TYPE" = uml ]; then uml_line "$name"; else qemu_line "$name"; fi
	timeout -s KILL "$G_TIMEOUT" "${LINE[@]}" "$@" \
		>"$W/$name/console" 2>&1 </dev/null &
	GUEST_PID=$!
}

# guest_follow NAME PID: shows what the guest's command prints until PID ends.
guest_follow() {
	tail -q -n +1 -s 0.1 -f --pid="$2" "$W/$1/out/stdout"
}

# console_tail FILE: prints the log from the first kernel report on, or else its end.
console_tail() {
	local first
	first=$(grep -a -n -m 1 -E 'Kernel panic|Oops|BUG:|general protection' "$1" |
		cut -d: -f1)
	if [ -n "$first" ]; then
		sed -n "$((first > 5 ? first - 5 : 1)),$((first + 45))p" "$1"
	else
		tail -n 40 "$1"
	fi
}

# guest_verdict NAME WAITSTATUS: the exit status of the command; 124 after a timeout; 125 if the
# guest ended without a status or did not power off: it panicked, or its emulator was terminated.
# QEMU prints that it was terminated, but its exit status is 0 even then.
guest_verdict() {
	local dir=$W/$1
	cp "$dir/console" "$dir/out/console"
	if [ "$2" = 0 ] && [ -f "$dir/out/status" ] &&
		! grep -a -q -E 'Kernel panic|terminating on signal' "$dir/console"; then
		cat "$dir/out/status"
		return
	fi
	if [ "$2" = 124 ] || [ "$2" = 137 ]; then
		note "guest $1: no end within its time; the console's last lines:"
		echo 124
	else
		note "guest $1: died ($2); the console's last lines:"
		echo 125
	fi
	console_tail "$dir/console" >&2
}

# guest_copy_out NAME DIR
guest_copy_out() {
	[ -n "$2" ] || return 0
	mkdir -p "$2"
	cp -r "$W/$1/out/." "$2"
}

guest_cleanup() {
	local pid
	for pid in $(jobs -p); do kill "$pid" 2>/dev/null; done
	wait 2>/dev/null
	if [ -n "$G_KEEP" ]; then note "kept $W"; else rm -rf "$W"; fi
}
