/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Directed cases.
 */
#ifndef KIW_ATTACK_CASES_H
#define KIW_ATTACK_CASES_H

/**
 * struct directed - a directed case
 * @name: its name; NULL ends a table
 * @run: the case
 * @spare: enum spare: the option that leaves it out
 * @words: what the case checks
 */
struct directed {
	const char *name;
	void (*run)(void);
	unsigned int spare;
	const char *words;
};

/* The case runs in a process of its own, whose children have ended before the next case. */
extern const struct directed accept_cases[];
extern const struct directed owner_cases[];
extern const struct directed end_cases[];

int run_cases(char **names, int count);

#endif /* KIW_ATTACK_CASES_H */
