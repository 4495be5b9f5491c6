# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Reads a kernel log and prints it without the data races that are none of the
# driver's. A report of KCSAN stays when a function of a module whose name begins with
# "kiwarp" is in one of its stacks. What an interrupt or a softirq does counts by itself,
# not by what it interrupted: a stack ends there.
#
# memalloc_noio_save() and its like write the flags of the running task where they are inlined.
# The tick of a workqueue's thread reads them, in kthread_data(), and so does another CPU that looks
# for work, in kthread_is_per_cpu(). Both look at a flag that never changes. Whichever module that
# hits, it is a race of the kernel with itself. So is ktime_get_seconds(), which reads a word of the
# timekeeper that the tick writes, and which TCP calls.
# So are move_linked_works() and clear_pending_if_disabled(): a workqueue's thread reads the flag of
# linked work items, and mod_delayed_work() that of disabled ones, in the word in which another call
# sets the pending bit. So is lock_sock_nested(): it compares and exchanges spinlock and owner of a
# socket at once, which fails while another CPU holds the spinlock and reads the owner.
#
# A report goes from its title to the next ruler. Lines of other reports that came
# between its own are printed whatever becomes of it.

# The line without time stamp and caller
function text(line) {
	sub(/^(\[[^]]*\] ?)+/, "", line)
	return line
}

function is_frame(t) { return t ~ /^ [^ ]+\+0x[0-9a-f]+\/0x[0-9a-f]+( |$)/ }

# Where what was interrupted begins
function is_boundary(t) {
	return t ~ /^ (asm_|sysvec_|common_interrupt|do_IRQ|ipi_handler|handle_softirqs)/ ||
		t ~ /^ (__do_softirq|__irq_exit_rcu|do_softirq)/
}

function is_access(t) {
	return t ~ /^(assert |race at unknown origin, with |read|write|marked|no |)/ &&
		t ~ /to 0x[0-9a-f]+ of [0-9]+ bytes by (task|interrupt)/
}

function is_part(t) {
	return t ~ /^$/ || is_access(t) || is_frame(t) || t ~ /^  \|$/ || t ~ /^  \+-> reordered to: / ||
		t ~ /^(value changed| bits changed|CPU|Hardware name|Workqueue|Tainted|Reported by Kernel Concurrency Sanitizer on): ?/
}

BEGIN {
	KNOWN = "kthread_data|kthread_is_per_cpu|ktime_get_seconds|move_linked_works|" \
		"clear_pending_if_disabled|lock_sock_nested"
}

# With one of these on one side of the title
function is_known(t) {
	return t ~ (" in (" KNOWN ") / ") || t ~ (" / (" KNOWN ")$")
}

function end_report(	i) {
	for (i = 0; i < n; i++)
		if ((is_ours && !is_left_out) || !part[i])
			print report[i]
	n = 0
}

{ t = text($0) }

t ~ /^BUG: KCSAN: / {
	end_report()
	is_ours = ended = 0
	is_left_out = is_known(t)
	in_report = 1
	part[n] = 1
	report[n++] = $0
	next
}

!in_report { print; next }

{
	part[n] = is_part(t) || t ~ /^=+$/
	report[n++] = $0
}

is_access(t) { ended = 0 }
is_boundary(t) { ended = 1 }
is_frame(t) && !ended && t ~ /\[kiwarp[a-z_]*[] ]/ { is_ours = 1 }
t ~ /^  \+-> reordered to: .*\[kiwarp/ { is_ours = 1 }
t ~ /^=+$/ { end_report(); in_report = 0 }

END { end_report() }
