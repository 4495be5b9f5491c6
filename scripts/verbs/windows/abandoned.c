// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A region whose registration fails after the driver has made it: the response ends behind a page
 * that cannot be written. The copying of the response is held up in the fault of that page, by
 * userfaultfd, while another thread binds a window to the region.
 */
#include "windows.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/userfaultfd.h>

/**
 * struct request - a call that registers memory
 * @hdr: what it is
 * @cmd: arguments
 */
struct request {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_reg_mr cmd;
};

/* Two pages. The response lies across their border, so that its last word is in the second one. */
static __u8 *border;

static void *registers(void *arg)
{
	const struct request *request = arg;
	const ssize_t done = write(w.mr[1]->context->cmd_fd, request, sizeof(*request));

	return (void *)(long)(done < 0 ? errno : 0);
}

static int hold_page(struct uffdio_register *range)
{
	struct uffdio_api api = { .api = UFFD_API };
	const int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	MUST(fd >= 0 && !ioctl(fd, UFFDIO_API, &api));
	range->mode = UFFDIO_REGISTER_MODE_MISSING;
	range->range.start = (unsigned long)border;
	range->range.len = PAGE;
	MUST(!ioctl(fd, UFFDIO_REGISTER, range));
	return fd;
}

/**
 * abandoned() - bind a window to a region whose registration is about to fail
 *
 * Context: user space; a kernel with userfaultfd.
 */
void abandoned(void)
{
	const struct ib_uverbs_reg_mr_resp *resp;
	struct request request = {
		.hdr = { IB_USER_VERBS_CMD_REG_MR, sizeof(request) / 4, sizeof(*resp) / 4 },
		.cmd = {
			.start = (unsigned long)w.room[1], .length = ROOM,
			.hca_va = (unsigned long)w.room[1], .pd_handle = w.sides[1].pd->handle,
			.access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
		},
	};
	struct window window = window_of(&w.sides[1], IBV_MW_TYPE_1);
	struct uffdio_register range = {};
	struct ibv_mr region = *w.mr[1];
	enum ibv_wc_status status;
	struct link link = {};
	pthread_t thread;
	void *result;
	int fd;

	link_to(&link, &w.sides[1]);
	border = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(border != MAP_FAILED);
	border += PAGE;
	resp = (void *)(border - offsetof(struct ib_uverbs_reg_mr_resp, rkey));
	request.cmd.response = (unsigned long)resp;
	fd = hold_page(&range);
	MUST(!pthread_create(&thread, NULL, registers, &request));
	while (!__atomic_load_n(&resp->lkey, __ATOMIC_ACQUIRE))
		rest();
	region.lkey = resp->lkey;
	status = bind_next(&link, &window, (struct ibv_mw_bind_info) {
		.mr = &region, .addr = (unsigned long)w.room[1], .length = ROOM,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	});
	MUST(!mprotect(border, PAGE, PROT_NONE) && !ioctl(fd, UFFDIO_UNREGISTER, &range.range));
	MUST(!pthread_join(thread, &result) && (long)result == EFAULT);
	if (status != IBV_WC_MW_BIND_ERR)
		fail("bound: %s", ibv_wc_status_str(status));
	unlink_all(&link);
	MUST(!ibv_dealloc_mw(window.mw));
}
