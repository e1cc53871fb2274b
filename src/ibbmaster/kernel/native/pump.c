/* Kernels that read, frame and send by themselves, and the one that reads pages and verifies them in the cache. */
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

/* Have pieces wait until a packet of the network is full, or no longer; a few wake-ups fewer. */
static void cork(long socket, int is_on) { setsockopt((int)socket, IPPROTO_TCP, TCP_CORK, &is_on, sizeof is_on); }

static long uncorked(const Sending *sending, long status) {
    cork(((const Progress *)sending->progress.at)->socket, 0);
    return status;
}

static bool is_writable(long socket) {
    cork(socket, 0);
    struct pollfd wanted = {(int)socket, POLLOUT, 0};
    bool is_ready = poll(&wanted, 1, WAIT_MS) > 0;
    cork(socket, 1);
    return is_ready;
}

/* Order what was framed: pieces of the output, with the segments of the source between. */
static long gather(Bytes source, const Framing *framing, struct iovec *vectors) {
    const Field *state = framing->state.at;
    long count = 0, position = 0;
    for (long index = 0; index <= state->segments; index++) {
        const Segment *segment = index < state->segments ? ROW(Segment, framing->segments, index) : NULL;
        long end = segment ? segment->at : state->out;
        if (position < end)
            vectors[count++] = (struct iovec){framing->out.at + position, (size_t)(end - position)};
        position = end;
        if (segment)
            vectors[count++] = (struct iovec){source.at + segment->start, (size_t)segment->size};
    }
    return count;
}

/* Send what was framed, corked; put what the socket does not take into `rest`, which is as long as `out`; all that was
framed is no longer: see `frame_bytes`. */
static bool send_framed(Bytes source, const Framing *framing, const Sending *sending) {
    Field *state = framing->state.at;
    Progress *progress = sending->progress.at;
    struct iovec *vectors = sending->vectors.at;
    long count = gather(source, framing, vectors), first = 0; /* of the pieces that are to be sent still */
    progress->framed += state->out + state->segment_bytes;
    bool is_retry = false;
    cork(progress->socket, 1);
    while (first < count) {
        struct msghdr message = {.msg_iov = vectors + first, .msg_iovlen = (size_t)(count - first)};
        ssize_t taken = sendmsg((int)progress->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (taken > 0) {
            is_retry = false;
            for (; first < count && (size_t)taken >= vectors[first].iov_len; first++)
                taken -= (ssize_t)vectors[first].iov_len;
            if (first < count) {
                vectors[first].iov_base = (byte *)vectors[first].iov_base + taken;
                vectors[first].iov_len -= (size_t)taken;
            }
        } else if (is_retry || !is_writable(progress->socket)) {
            break;
        } else {
            is_retry = true;
        }
    }
    state->out = state->segments = state->segment_bytes = 0;
    long filled = 0;
    for (; first < count; first++) {
        memcpy(sending->rest.at + filled, vectors[first].iov_base, vectors[first].iov_len);
        filled += (long)vectors[first].iov_len;
    }
    progress->rest = filled;
    return filled == 0;
}

static long read_block(long file, Bytes pages, long offset) {
    return pread((int)file, pages.at, PAGES_PER_READ * PAGE, offset) / PAGE;
}

/* File offset of the first commit record from a chunk on, and before `end` unless that is 0; 0 for none. The heads of
chunks, which alone are read, may be damaged: the caller checks the way. */
static long find_commit(long file, long begin, long end) {
    for (long place = begin; place < begin + READ_MAX && (end == 0 || place < end);) {
        long offset = place % PAGE, type_byte = FILLER, size = 0;
        if (offset < DATA - CHUNK_HEADER) {
            byte head[4] = {0};
            if (pread((int)file, head, CHUNK_HEADER, place) != CHUNK_HEADER)
                break;
            type_byte = head[0];
            size = load32(head) >> 8;
        }
        if (type_byte == FILLER) {
            place += PAGE - offset;
            continue;
        }
        long record_type = type_byte & TYPE_MASK;
        if (record_type == COMMIT)
            return type_byte & CONT ? 0 : place;
        if (!is_known_type(record_type) || size == 0 || offset + CHUNK_HEADER + size > DATA)
            break;
        place += CHUNK_HEADER + size;
    }
    return 0;
}

/* Frame and send whole groups; see `frame_table`. Long pieces go from the pages to the socket without another copy.
What is skipped and verified is remembered: a large group that follows consists of it. Returns why it stopped: FULL also
where the budget is used, the socket takes no more, or much was read; DONE where out-of-band records begin, and COMMIT
is the place of their commit record, as the heads of chunks say, or KNOWN_COMMIT where they begin at KNOWN_BEGIN;
nothing of it was verified. */
static long pump_pages(Bytes pages, const Framing *framing, const Sending *sending) {
    Field *state = framing->state.at;
    Progress *progress = sending->progress.at;
    long last = progress->file_offset + READ_MAX;
    bool may_walk = true;
    progress->commit = 0;
    progress->verified_from = progress->verified_to = progress->file_offset;
    while (progress->framed < progress->budget && progress->file_offset < last) {
        long count = read_block(progress->file, pages, progress->file_offset);
        if (count <= 0)
            return NO_DATA;
        long offset = state->offset;
        state->page = state->out = 0;
        if (progress->end > 0) {
            state->end = progress->end - progress->file_offset;
            if (state->end <= offset)
                return NO_DATA;
        }
        long status = frame_table(pages, count, framing);
        if (may_walk && state->run >= 0 && status == NEED_MORE) {
            bool is_known = progress->file_offset + state->run == progress->known_begin;
            long begin = progress->file_offset + state->page * PAGE + state->offset;
            progress->commit = is_known ? progress->known_commit : find_commit(progress->file, begin, progress->end);
            may_walk = false;
            if (progress->commit > 0) {
                stop_at(state->run, state);
                status = DONE;
            }
        }
        bool has_advanced = state->page > 0 || state->offset != offset;
        progress->file_offset += state->page * PAGE;
        progress->verified_to = progress->file_offset;
        if (!send_framed(pages, framing, sending))
            return FULL;
        if (status != NEED_MORE && status != FULL)
            return status;
        if (!has_advanced)
            return status == NEED_MORE ? FALLBACK : FULL;
    }
    return FULL;
}

/* Frame and send the out-of-band nodes of one file, after what the output has already. `pump_pages` has verified pages
that it skipped. Returns why it stopped: DONE after the last node, FULL where the budget is used or the socket takes no
more, else as `frame_node`, with the place of the trouble. */
static long pump_nodes(Rows nodes, Bytes pages, const Framing *framing, const Sending *sending) {
    Field *state = framing->state.at;
    Progress *progress = sending->progress.at;
    long begin = -1, count = 0, verified = 0; /* of the current pages the file offset, how many, and how many right */
    while (progress->node < nodes.rows) {
        if (!progress->is_begun) {
            const NodeRow *node = ROW(NodeRow, nodes, progress->node);
            progress->file_offset = node->place / PAGE * PAGE;
            state->offset = node->place % PAGE;
            state->to_skip = node->header_size;
            state->skip_type = state->nested_type = -1;
            progress->is_begun = 1;
        }
        long offset = progress->file_offset;
        if (offset < begin || offset >= begin + count * PAGE) {
            if (state->segments > 0 || state->out >= SEND_MIN)
                if (!send_framed(pages, framing, sending) || progress->framed >= progress->budget)
                    return FULL;
            begin = offset;
            count = read_block(progress->file, pages, begin);
            if (count <= 0) {
                send_framed(pages, framing, sending);
                return NEED_MORE;
            }
            bool is_verified = progress->verified_from <= begin && begin < progress->verified_to;
            verified = is_verified ? min64(count, (progress->verified_to - begin) / PAGE) : 0;
        }
        long first = (offset - begin) / PAGE;
        state->page = first;
        state->verified = verified;
        long status = frame_node(pages, count, framing);
        progress->file_offset = begin + state->page * PAGE;
        if (first <= verified && verified < state->page)
            verified = state->page;
        if (status == DONE) {
            progress->node++;
            progress->is_begun = 0;
        } else if (status != NEED_MORE) {
            if (!send_framed(pages, framing, sending) || progress->framed >= progress->budget)
                return FULL;
            if (status != FULL)
                return status;
        }
    }
    return send_framed(pages, framing, sending) ? DONE : FULL;
}

/* As `pump_nodes`, and check all between them and up to COMMIT; DONE before it, FULL also where other nodes are wanted,
else as `frame_way`. */
static long pump_way(Rows nodes, Bytes pages, const Framing *framing, const Sending *sending) {
    Field *state = framing->state.at;
    Progress *progress = sending->progress.at;
    long status = NEED_MORE;
    while (status == NEED_MORE) {
        if (progress->framed >= progress->budget)
            return FULL;
        long base = progress->file_offset;
        state->page = 0;
        if (base == progress->commit) {
            status = is_between_records(state) ? DONE : FALLBACK;
        } else {
            long count = read_block(progress->file, pages, base);
            status = count > 0 ? frame_way(pages, count, base, nodes, framing, progress) : NO_DATA;
        }
        progress->file_offset += state->page * PAGE;
        bool is_full = status == FULL && state->out + state->segment_bytes > 0;
        if (!send_framed(pages, framing, sending))
            return FULL;
        if (is_full)
            status = NEED_MORE;
    }
    return status;
}

static long pump_classic(Bytes source, const Framing *framing, const Roles *roles, const Sending *sending) {
    Field *state = framing->state.at;
    Progress *progress = sending->progress.at;
    long wanted = BYTES_PER_READ;
    while (progress->framed < progress->budget) {
        long size = pread((int)progress->file, source.at, (size_t)wanted, progress->file_offset);
        if (progress->end > 0 && state->in_parts == 0)
            size = min64(size, progress->end - progress->file_offset);
        if (size <= 0)
            return NEED_MORE;
        state->read_at = 0;
        state->source_offset = progress->file_offset;
        state->out = 0;
        long status = frame_classic(source, size, framing, roles, (Rows){0});
        bool has_advanced = state->read_at > 0 || state->out > 0;
        progress->file_offset += state->read_at;
        if (!send_framed(source, framing, sending))
            return FULL;
        if (status == FALLBACK)
            return status;
        if (status == DONE)
            state->in_parts = 0;
        bool needs_more = status == NEED_MORE;
        if (status == DONE || has_advanced)
            wanted = state->in_parts ? BYTES_PER_LONG_READ : BYTES_PER_READ;
        else if (needs_more && size == wanted && wanted < BYTES_PER_LONG_READ)
            wanted = BYTES_PER_LONG_READ;
        else if ((needs_more && size < wanted) || state->in_parts || !state->may_be_in_parts)
            return status;
        else
            state->in_parts = 1;
    }
    return FULL;
}

KERNEL(pump) { return uncorked(&a->sending, pump_pages(a->pages, &a->framing, &a->sending)); }
KERNEL(pump_nodes) { return uncorked(&a->sending, pump_nodes(a->nodes, a->pages, &a->framing, &a->sending)); }
KERNEL(pump_way) { return uncorked(&a->sending, pump_way(a->nodes, a->pages, &a->framing, &a->sending)); }
KERNEL(pump_classic) { return uncorked(&a->sending, pump_classic(a->source, &a->framing, &a->roles, &a->sending)); }

/* Fill `pages` from an offset of a file on, up to its end or an error; gives how many are whole, and how many from the
first on are right. */
KERNEL(read_pages) {
    long size = 0, good = 0;
    bool is_right = true;
    while (size < a->pages.size) {
        long wanted = min64(a->pages.size - size, PAGES_PER_LOOK * PAGE - size % PAGE);
        ssize_t taken = pread((int)a->file, a->pages.at + size, (size_t)wanted, a->offset + size);
        if (taken <= 0)
            break;
        for (size += taken; is_right && (good + 1) * PAGE <= size; good += is_right)
            is_right = is_page_good(a->pages.at + good * PAGE);
    }
    *more = good;
    return size / PAGE;
}
