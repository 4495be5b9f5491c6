// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Events of connections, which wait for the interface's work item (control.c).
 *
 * They are noted by rdma_cm's handler, by the handler of events of the QP and the completion queue,
 * and by the receive path.
 */
#include "conn.h"
#include "dev.h"
#include "peer.h"

static void event_note_locked(struct kip_dev *dev, struct kip_conn *conn, unsigned int events)
{
	unsigned long flags;

	lockdep_assert_held(&conn->lock);
	spin_lock_irqsave(&dev->event_lock, flags);
	conn->events |= events;
	if (list_empty(&conn->event_entry))
		list_add_tail(&conn->event_entry, &dev->events);
	spin_unlock_irqrestore(&dev->event_lock, flags);
	mod_delayed_work(kip_wq, &dev->work, 0);
}

/**
 * kip_conn_note() - note events of a connection
 * @conn: the connection
 * @events: %KIP_CE_ bits
 *
 * Queues the interface's work item to handle them. Does nothing once the connection is given
 * up.
 *
 * Context: any.
 */
void kip_conn_note(struct kip_conn *conn, unsigned int events)
{
	unsigned long flags;

	spin_lock_irqsave(&conn->lock, flags);
	if (conn->dev)
		event_note_locked(conn->dev, conn, events);
	spin_unlock_irqrestore(&conn->lock, flags);
}

/**
 * kip_conn_break() - stop using a connection whose work requests fail
 * @conn: the connection; its peer's lock is held
 *
 * When a connection ends, its work requests are often flushed before an event tells why. The
 * interface's work item waits for that event for a while.
 *
 * Context: any with interrupts enabled.
 */
void kip_conn_break(struct kip_conn *conn)
{
	lockdep_assert_held(&conn->peer->lock);
	if (!conn->is_up)
		return;
	conn->is_up = false;
	conn->is_broken = true;
	conn->broken_at = jiffies;
}
