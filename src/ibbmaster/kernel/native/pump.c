/* Kernels that read, frame and send by themselves, so that a far replica costs no Python for each block; and the one
that reads pages and verifies them while they are in the cache of the core. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGES_PER_READ 32 /* 512 KiB: a sixth to a quarter more goes through than with half or twice as much */
#define PAGES_PER_LOOK 16
#define SEND_MIN (1 << 17) /* bytes of output that are worth a call by themselves */
#define READ_MAX (1 << 28) /* bytes of a file in one call: where nothing is framed, it may have to end */
#define BYTES_PER_READ (1 << 18) /* of a traditional file: with what is made of it in the second cache of a core */
#define BYTES_PER_LONG_READ (1 << 20) /* of groups that are longer */
#define WAIT_MS 10 /* for a socket that takes nothing, before the caller shall wait in a better way */

/* Have pieces wait for each other until a packet of the network is full, or no longer; a few wake-ups fewer. */
static void cork(int64_t socket, int is_on) { setsockopt((int)socket, IPPROTO_TCP, TCP_CORK, &is_on, sizeof is_on); }

/* What was done with a corked socket. */
static int64_t uncorked(int64_t socket, int64_t status) {
    cork(socket, 0);
    return status;
}

/* Wait a moment for a socket that took nothing. */
static bool is_writable(int64_t socket) {
    cork(socket, 0);
    struct pollfd wanted = {(int)socket, POLLOUT, 0};
    bool is_ready = poll(&wanted, 1, WAIT_MS) > 0;
    cork(socket, 1);
    return is_ready;
}

/* Put what was framed in order: pieces of the output, with the segments of the source between. */
static int64_t gather(Bytes source, const Framing *framing, struct iovec *vectors) {
    const Field *state = framing->state.at;
    int64_t count = 0, position = 0;
    for (int64_t index = 0; index <= state->segments; index++) {
        const Segment *segment = index < state->segments ? ROW(Segment, framing->segments, index) : NULL;
        int64_t end = segment ? segment->at : state->out;
        if (position < end) {
            vectors[count++] = (struct iovec){framing->out.at + position, (size_t)(end - position)};
            position = end;
        }
        if (segment)
            vectors[count++] = (struct iovec){source.at + segment->start, (size_t)segment->size};
    }
    return count;
}

/* Send what was framed in one call, if the socket takes it; what it does not take is put into `rest`.

The output is empty then. `rest` is as long as `out`, and all that was framed is no longer: see `frame_bytes`. */
static bool send_framed(int64_t socket, Bytes source, const Framing *framing, const Sending *sending) {
    Field *state = framing->state.at;
    Progress *progress = sending->progress.at;
    struct iovec *vectors = (struct iovec *)sending->vectors.at;
    int64_t count = gather(source, framing, vectors), first = 0; /* of the pieces that are to be sent still */
    progress->framed += state->out + state->segment_bytes;
    bool is_retry = false;
    while (first < count) {
        struct msghdr message = {.msg_iov = vectors + first, .msg_iovlen = (size_t)(count - first)};
        ssize_t taken = sendmsg((int)socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (taken > 0) {
            is_retry = false;
            for (; first < count && (size_t)taken >= vectors[first].iov_len; first++)
                taken -= (ssize_t)vectors[first].iov_len;
            if (first < count) {
                vectors[first].iov_base = (uint8_t *)vectors[first].iov_base + taken;
                vectors[first].iov_len -= (size_t)taken;
            }
        } else if (is_retry || !is_writable(socket)) {
            break;
        } else {
            is_retry = true;
        }
    }
    state->out = state->segments = state->segment_bytes = 0;
    int64_t filled = 0;
    for (; first < count; first++) {
        memcpy(sending->rest.at + filled, vectors[first].iov_base, vectors[first].iov_len);
        filled += (int64_t)vectors[first].iov_len;
    }
    progress->rest = filled;
    return filled == 0;
}

/* How many whole pages of a file come to `pages` from an offset on. */
static int64_t read_block(int64_t file, Bytes pages, int64_t offset) {
    return pread((int)file, pages.at, PAGES_PER_READ * PAGE, offset) / PAGE;
}

/* File offset of the commit record that comes first from a chunk on, and before `end` unless that is 0; 0 for none.

Only the heads of chunks are read, and they may be damaged: the caller has to check the whole way. */
static int64_t find_commit(int64_t file, int64_t begin, int64_t end) {
    for (int64_t place = begin; place < begin + READ_MAX && (end == 0 || place < end);) {
        int64_t offset = place % PAGE, type_byte = FILLER, size = 0;
        if (offset < DATA - CHUNK_HEADER) {
            uint8_t head[4] = {0};
            if (pread((int)file, head, CHUNK_HEADER, place) != CHUNK_HEADER)
                break;
            type_byte = head[0];
            size = load32(head) >> 8;
        }
        if (type_byte == FILLER) {
            place += PAGE - offset;
            continue;
        }
        int64_t record_type = type_byte & TYPE_MASK;
        if (record_type == COMMIT)
            return type_byte & CONT ? 0 : place;
        bool is_known = (uint64_t)KNOWN_TYPES >> record_type & 1;
        if (!is_known || type_byte == 0 || size == 0 || offset + CHUNK_HEADER + size > DATA)
            break;
        place += CHUNK_HEADER + size;
    }
    return 0;
}

/* Frame and send groups until something else than a whole group in its pages comes; see `frame_table`.

Long pieces go from the pages that were read to the socket, without another copy. What is skipped and verified is
remembered: a large group that follows consists of it.

Returns why it stopped: FULL also where the budget is used, or the socket takes no more, or much was read; DONE where
out-of-band records begin, and COMMIT is the place of their commit record, as the heads of chunks say, or KNOWN_COMMIT
where they begin at KNOWN_BEGIN; nothing of it was verified. */
static int64_t pump_pages(int64_t file, int64_t socket, Bytes pages, const Framing *framing, const Sending *sending) {
    Field *state = framing->state.at;
    Progress *progress = sending->progress.at;
    progress->commit = 0;
    bool may_walk = true;
    int64_t last = progress->file_offset + READ_MAX;
    progress->verified_from = progress->verified_to = progress->file_offset;
    while (progress->framed < progress->budget && progress->file_offset < last) {
        int64_t count = read_block(file, pages, progress->file_offset);
        if (count <= 0)
            return Status_NO_DATA;
        int64_t offset = state->offset;
        state->page = state->out = 0;
        if (progress->end > 0) {
            state->end = progress->end - progress->file_offset;
            if (state->end <= offset)
                return Status_NO_DATA;
        }
        int64_t status = frame_table(pages, count, framing);
        if (may_walk && state->run >= 0 && status == Status_NEED_MORE) {
            if (progress->file_offset + state->run == progress->known_begin) {
                progress->commit = progress->known_commit;
            } else {
                int64_t begin = progress->file_offset + state->page * PAGE + state->offset;
                progress->commit = find_commit(file, begin, progress->end);
            }
            may_walk = false;
            if (progress->commit > 0) {
                stop_at(state->run, state);
                status = Status_DONE;
            }
        }
        bool has_advanced = state->page > 0 || state->offset != offset;
        progress->file_offset += state->page * PAGE;
        progress->verified_to = progress->file_offset;
        if (!send_framed(socket, pages, framing, sending))
            return Status_FULL;
        if (status != Status_NEED_MORE && status != Status_FULL)
            return status;
        if (!has_advanced)
            return status == Status_NEED_MORE ? Status_FALLBACK : Status_FULL;
    }
    return Status_FULL;
}

/* Frame and send the events in out-of-band nodes; `nodes` are those of one file.

What the output has already goes out first. Pages that `pump_pages` has skipped were verified there.

Returns why it stopped: DONE after the last node, FULL where the budget is used or the socket takes no more, else as
`frame_node`, with the place of the current trouble. */
static int64_t pump_nodes(int64_t file, int64_t socket, NumberRows nodes, Bytes pages, const Framing *framing,
                          const Sending *sending) {
    Field *state = framing->state.at;
    Progress *progress = sending->progress.at;
    /* file offset of the current pages, how many, and of them whose checksum is right */
    int64_t begin = -1, count = 0, verified = 0;
    while (progress->node < nodes.rows) {
        if (!progress->is_begun) {
            const NodeRow *node = ROW(NodeRow, nodes, progress->node);
            progress->file_offset = node->place / PAGE * PAGE;
            state->offset = node->place % PAGE;
            state->to_skip = node->header_size;
            state->skip_type = state->nested_type = -1;
            progress->is_begun = 1;
        }
        int64_t offset = progress->file_offset;
        if (offset < begin || offset >= begin + count * PAGE) {
            if (state->segments > 0 || state->out >= SEND_MIN)
                if (!send_framed(socket, pages, framing, sending) || progress->framed >= progress->budget)
                    return Status_FULL;
            begin = offset;
            count = read_block(file, pages, begin);
            if (count <= 0) {
                send_framed(socket, pages, framing, sending);
                return Status_NEED_MORE;
            }
            bool is_verified = progress->verified_from <= begin && begin < progress->verified_to;
            verified = is_verified ? min64(count, (progress->verified_to - begin) / PAGE) : 0;
        }
        int64_t first = (offset - begin) / PAGE;
        state->page = first;
        state->verified = verified;
        int64_t status = frame_node(pages, count, framing);
        progress->file_offset = begin + state->page * PAGE;
        if (first <= verified && verified < state->page)
            verified = state->page;
        if (status == Status_DONE) {
            progress->node++;
            progress->is_begun = 0;
        } else if (status != Status_NEED_MORE) {
            if (!send_framed(socket, pages, framing, sending) || progress->framed >= progress->budget)
                return Status_FULL;
            if (status != Status_FULL)
                return status;
        }
    }
    return send_framed(socket, pages, framing, sending) ? Status_DONE : Status_FULL;
}

/* Frame and send the events in out-of-band nodes, and check all that lies between them and up to `COMMIT`.

What the output has already goes out first.

Returns why it stopped: DONE before the commit record, FULL where the budget is used, the socket takes no more or other
nodes are wanted, else as `frame_way`, with the place of the current trouble. */
static int64_t pump_way(int64_t file, int64_t socket, NumberRows nodes, Bytes pages, const Framing *framing,
                        const Sending *sending) {
    Field *state = framing->state.at;
    Progress *progress = sending->progress.at;
    int64_t status = Status_NEED_MORE;
    while (status == Status_NEED_MORE) {
        if (progress->framed >= progress->budget)
            return Status_FULL;
        int64_t base = progress->file_offset;
        state->page = 0;
        if (base == progress->commit) {
            status = is_between_records(state) ? Status_DONE : Status_FALLBACK;
        } else {
            int64_t count = read_block(file, pages, base);
            status = count > 0 ? frame_way(pages, count, base, nodes, framing, progress) : Status_NO_DATA;
        }
        progress->file_offset += state->page * PAGE;
        bool is_full = status == Status_FULL && state->out + state->segment_bytes > 0;
        if (!send_framed(socket, pages, framing, sending))
            return Status_FULL;
        if (is_full)
            status = Status_NEED_MORE;
    }
    return status;
}

/* Frame and send groups of a traditional file until the budget is used, the socket takes no more, or the caller has to
decide. */
static int64_t pump_classic(int64_t file, int64_t socket, Bytes source, const Framing *framing, const Roles *roles,
                            const Sending *sending) {
    Field *state = framing->state.at;
    Progress *progress = sending->progress.at;
    int64_t wanted = BYTES_PER_READ;
    while (progress->framed < progress->budget) {
        int64_t size = pread((int)file, source.at, (size_t)wanted, progress->file_offset);
        if (progress->end > 0 && state->in_parts == 0)
            size = min64(size, progress->end - progress->file_offset);
        if (size <= 0)
            return Status_NEED_MORE;
        state->read_at = 0;
        state->source_offset = progress->file_offset;
        state->out = 0;
        int64_t status = frame_classic(source, size, framing, roles, (NumberRows){0});
        bool has_advanced = state->read_at > 0 || state->out > 0;
        progress->file_offset += state->read_at;
        if (!send_framed(socket, source, framing, sending))
            return Status_FULL;
        if (status == Status_DONE) {
            state->in_parts = 0;
            wanted = BYTES_PER_READ;
        } else if (status == Status_FALLBACK) {
            return Status_FALLBACK;
        } else if (has_advanced) {
            wanted = state->in_parts ? BYTES_PER_LONG_READ : BYTES_PER_READ;
        } else if (status == Status_NEED_MORE && size < wanted) {
            return Status_NEED_MORE;
        } else if (status == Status_NEED_MORE && wanted < BYTES_PER_LONG_READ) {
            wanted = BYTES_PER_LONG_READ;
        } else if (state->in_parts || !state->may_be_in_parts) {
            return status;
        } else {
            state->in_parts = 1;
        }
    }
    return Status_FULL;
}

/* As `pump_pages`, with the socket corked meanwhile. */
KERNEL(pump) {
    cork(a->socket, 1);
    return uncorked(a->socket, pump_pages(a->file, a->socket, a->pages, &a->framing, &a->sending));
}

KERNEL(pump_nodes) {
    cork(a->socket, 1);
    return uncorked(a->socket, pump_nodes(a->file, a->socket, a->nodes, a->pages, &a->framing, &a->sending));
}

KERNEL(pump_way) {
    cork(a->socket, 1);
    return uncorked(a->socket, pump_way(a->file, a->socket, a->nodes, a->pages, &a->framing, &a->sending));
}

KERNEL(pump_classic) {
    cork(a->socket, 1);
    return uncorked(a->socket, pump_classic(a->file, a->socket, a->source, &a->framing, &a->roles, &a->sending));
}

/* Fill `pages` from an offset of a file on; gives how many are whole, and how many from the first on are right.

They end where the file does, and at an error of reading. */
KERNEL(read_pages) {
    int64_t size = 0, good = 0;
    bool is_right = true;
    while (size < a->pages.size) {
        int64_t wanted = min64(a->pages.size - size, PAGES_PER_LOOK * PAGE - size % PAGE);
        ssize_t taken = pread((int)a->file, a->pages.at + size, (size_t)wanted, a->offset + size);
        if (taken <= 0)
            break;
        for (size += taken; is_right && (good + 1) * PAGE <= size; good += is_right)
            is_right = is_page_good(a->pages.at + good * PAGE);
    }
    *more = good;
    return size / PAGE;
}
