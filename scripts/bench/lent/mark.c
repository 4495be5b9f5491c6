// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Executes the instruction at which the plugin (../count/plugin.c) writes down its counts.
 */

/**
 * main() - a nopl whose address spells KIW1
 *
 * Context: user space, in a guest.
 * Return: 0.
 */
int main(void)
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 'K', 'I', 'W', '1'");
	return 0;
}
