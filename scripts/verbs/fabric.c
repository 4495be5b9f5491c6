// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * fabric server ADDRESS PORT | fabric client ADDRESS PORT: atomic operations of libfabric, between
 * two endpoints of messages (FI_EP_MSG) of its provider "verbs". Each of them is one host.
 *
 * The server's private data tells the client where its memory is. The client executes each atomic
 * operation that the provider has, and checks what it returns. When the client has disconnected,
 * the server checks what the memory has become. The programs end with status 0 if all was right.
 */
#include "common.h"

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#define SUMS		200
#define START		5ULL
#define SWAPPED		0x123456789abcdef0ULL
#define WRITTEN		0xfedcba9876543210ULL

/* Fails, and tells the place, if a function of libfabric has returned an error. */
#define OK(call) do { \
	int ret_ = (call); \
	if (ret_) \
		fail("%s:%d: %s: %s", __FILE__, __LINE__, #call, fi_strerror(-ret_)); \
} while (0)

/**
 * struct place - private data of the server: where its memory is
 * @addr: address of two words
 * @key: their key
 */
struct place {
	__u64 addr;
	__u64 key;
};

/**
 * struct world - state of the program
 * @fabric: the fabric
 * @domain: the device
 * @eq: events of connections
 * @cq: completions of @ep
 * @ep: the endpoint
 * @mr: region of @words
 * @words: memory of the server, or of the client that results and operands are in
 */
static struct world {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	__u64 *words;
} w;

static struct fi_info *info_of(const char *addr, const char *port, __u64 flags)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	MUST(hints);
	hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR |
				      FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("verbs");
	OK(fi_getinfo(FI_VERSION(1, 17), addr, port, flags, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static void open_fabric(struct fi_info *info)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	OK(fi_fabric(info->fabric_attr, &w.fabric, NULL));
	OK(fi_eq_open(w.fabric, &attr, &w.eq, NULL));
}

static void open_endpoint(struct fi_info *info)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_CONTEXT, .size = 16 };

	OK(fi_domain(w.fabric, info, &w.domain, NULL));
	w.words = pages(PAGE);
	OK(fi_mr_reg(w.domain, w.words, PAGE,
		     FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &w.mr, NULL));
	OK(fi_endpoint(w.domain, info, &w.ep, NULL));
	OK(fi_cq_open(w.domain, &attr, &w.cq, NULL));
	OK(fi_ep_bind(w.ep, &w.eq->fid, 0));
	OK(fi_ep_bind(w.ep, &w.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(w.ep));
}

static void close_all(void)
{
	OK(fi_close(&w.ep->fid));
	OK(fi_close(&w.cq->fid));
	OK(fi_close(&w.mr->fid));
	OK(fi_close(&w.domain->fid));
	OK(fi_close(&w.eq->fid));
	OK(fi_close(&w.fabric->fid));
}

/* Waits for an event, and returns the length of its private data. */
static size_t await(__u32 wanted, struct fi_eq_cm_entry *entry, size_t size)
{
	ssize_t ret;
	__u32 event;

	ret = fi_eq_sread(w.eq, &event, entry, size, (int)(patience() * 1000), 0);
	if (ret < (ssize_t)sizeof(*entry) || event != wanted)
		fail("no event %u: %zd", wanted, ret);
	return ret - sizeof(*entry);
}

static void server(const char *addr, const char *port)
{
	struct fi_info *info = info_of(addr, port, FI_SOURCE);
	struct fi_eq_cm_entry entry;
	struct fid_pep *pep;
	struct place place;

	open_fabric(info);
	OK(fi_passive_ep(w.fabric, info, &pep, NULL));
	OK(fi_pep_bind(pep, &w.eq->fid, 0));
	OK(fi_listen(pep));
	await(FI_CONNREQ, &entry, sizeof(entry));
	open_endpoint(entry.info);
	w.words[0] = START;
	place = (struct place) { (unsigned long)w.words, fi_mr_key(w.mr) };
	OK(fi_accept(w.ep, &place, sizeof(place)));
	await(FI_CONNECTED, &entry, sizeof(entry));
	await(FI_SHUTDOWN, &entry, sizeof(entry));
	if (w.words[0] != SWAPPED + SUMS || w.words[1] != WRITTEN)
		fail("the memory is %llx %llx", w.words[0], w.words[1]);
	fi_freeinfo(entry.info);
	OK(fi_close(&pep->fid));
	close_all();
	fi_freeinfo(info);
}

static void done(void)
{
	double end = now() + patience();
	struct fi_cq_entry entry;
	ssize_t ret;

	do {
		ret = fi_cq_read(w.cq, &entry, 1);
		rest();
	} while (ret == -FI_EAGAIN && now() < end);
	if (ret != 1)
		fail("no completion: %s", fi_strerror((int)-ret));
}

static __u64 *result(void)
{
	return &w.words[2];
}

/* libfabric 1.17 takes the address of an operand for its value. */
static const void *operand_of(__u64 value)
{
	return (const void *)(unsigned long)value;
}

static __u64 fetch(const struct place *to, enum fi_op op, __u64 operand)
{
	*result() = 0;
	OK(fi_fetch_atomic(w.ep, operand_of(operand), 1, NULL, result(), fi_mr_desc(w.mr), 0,
			   to->addr, to->key, FI_UINT64, op, NULL));
	done();
	return *result();
}

static __u64 swap(const struct place *to, __u64 compare, __u64 operand)
{
	*result() = 0;
	OK(fi_compare_atomic(w.ep, operand_of(operand), 1, NULL, operand_of(compare), NULL,
			     result(), fi_mr_desc(w.mr), 0, to->addr, to->key, FI_UINT64, FI_CSWAP,
			     NULL));
	done();
	return *result();
}

static void put(const struct place *to, __u64 value)
{
	w.words[0] = value;
	OK(fi_atomic(w.ep, &w.words[0], 1, fi_mr_desc(w.mr), 0, to->addr, to->key, FI_UINT64,
		     FI_ATOMIC_WRITE, NULL));
	done();
}

static void operate(const struct place *first)
{
	const struct place second = { first->addr + sizeof(__u64), first->key };
	int i;

	MUST(fetch(first, FI_SUM, 7) == START);
	MUST(fetch(first, FI_ATOMIC_READ, 0) == START + 7);
	MUST(swap(first, START, 1) == START + 7);
	MUST(swap(first, START + 7, SWAPPED) == START + 7);
	for (i = 0; i < SUMS; i++)
		MUST(fetch(first, FI_SUM, 1) == SWAPPED + i);
	put(&second, WRITTEN);
	MUST(fetch(&second, FI_ATOMIC_READ, 0) == WRITTEN);
}

static void client(const char *addr, const char *port)
{
	struct fi_info *info = info_of(addr, port, 0);
	struct {
		struct fi_eq_cm_entry entry;
		struct place place;
	} connected;

	open_fabric(info);
	open_endpoint(info);
	OK(fi_connect(w.ep, info->dest_addr, NULL, 0));
	MUST(await(FI_CONNECTED, &connected.entry, sizeof(connected)) >= sizeof(struct place));
	operate(&connected.place);
	OK(fi_shutdown(w.ep, 0));
	close_all();
	fi_freeinfo(info);
}

/**
 * main() - see the head of the file
 * @argc: number of arguments
 * @argv: arguments
 *
 * Context: user space.
 * Return: 0, or 1 when something was wrong.
 */
int main(int argc, char **argv)
{
	MUST(argc == 4);
	(strcmp(argv[1], "server") ? client : server)(argv[2], argv[3]);
	printf("%d sums\n", SUMS);
	return 0;
}
