/* Kernels that frame events as packets. The reference: `ibbmaster.replication.dump.framing`. */

#define SEGMENT_MIN 8192 /* bytes: shorter pieces are copied faster than sent by themselves */
#define SMALL_EVENT 256 /* bytes: up to here, copies of 32 bytes are faster than a call */
#define ROOM 64 /* bytes that are kept free for headers, checksums, and copies that go too far */

typedef struct { long at, start, size; } Segment;

static inline bool is_left_out(const byte *event, long filters) {
    return (filters & LEAVES_OUT_ANNOTATE && event[TYPE_OFFSET] == EventType_ANNOTATE_ROWS) ||
           (filters & LEAVES_OUT_MARKED && load16(event + FLAGS_OFFSET) & EventFlag_SKIP_REPLICATION);
}

/* What is in the output, to go back to. */
typedef struct { long out, sequence, segments, segment_bytes; } Mark;

static inline Mark mark_of(const Field *state) {
    return (Mark){state->out, state->sequence, state->segments, state->segment_bytes};
}

static inline void go_back(Field *state, Mark mark) {
    state->out = mark.out;
    state->sequence = mark.sequence;
    state->segments = mark.segments;
    state->segment_bytes = mark.segment_bytes;
}

/* Copy an event; where it `may_exceed`, up to 31 bytes behind a small one go along. */
static inline void copy_event(byte *to, const byte *event, long size, bool may_exceed) {
    if (size <= SMALL_EVENT && may_exceed)
        for (long step = 0; step < size; step += 32)
            memcpy(to + step, event + step, 32);
    else
        copy(to, event, size);
}

static inline long room_in(const Framing *framing) {
    const Field *state = framing->state.at;
    return framing->out.size - state->segment_bytes - state->out;
}

static inline void begin_packet(Field *state, byte *out, long payload) {
    store32(out + state->out, payload | state->sequence << 24);
    state->out += 4;
    state->sequence = (state->sequence + 1) & 0xFF;
}

static inline void continue_packet(Field *state, byte *out, long left) {
    if (state->packet_left == 0) {
        state->packet_left = min64(left, PACKET_MAX);
        begin_packet(state, out, state->packet_left);
    }
}

/* Begin the first packet of an event of `size` bytes, with its header; returns where that is. */
static byte *begin_event(const byte *head, long size, const Framing *framing) {
    Field *state = framing->state.at;
    long prefix_size = state->prefix_size, payload = size + prefix_size;
    state->empty_tail = payload % PACKET_MAX == 0;
    state->packet_left = 0;
    continue_packet(state, framing->out.at, payload);
    byte *at = framing->out.at + state->out;
    copy(at, framing->prefix.at, prefix_size);
    memcpy(at + prefix_size, head, EVENT_HEADER);
    state->out += prefix_size + EVENT_HEADER;
    state->packet_left -= prefix_size + EVENT_HEADER;
    return at + prefix_size;
}

/* Put bytes of an event after what is in the output, or note a long piece. */
static void put_piece(const byte *source, long start, long size, const Framing *framing) {
    Field *state = framing->state.at;
    if (size >= SEGMENT_MIN && state->segments < framing->segments.rows) {
        *ROW(Segment, framing->segments, state->segments++) = (Segment){state->out, start, size};
        state->segment_bytes += size;
        return;
    }
    copy(framing->out.at + state->out, source + start, size);
    state->out += size;
}

/* The bytes in front of each event, as a number. */
static inline uint64_t prefix_of(const Framing *framing) {
    long bits = 8 * ((const Field *)framing->state.at)->prefix_size;
    return (uint64_t)load32(framing->prefix.at) & ((UINT64_C(1) << bits) - 1);
}

/* How events of less bytes than `size_max` are framed, up to `room` of the output. */
typedef struct { uint64_t prefix; long prefix_size, filters, size_max, room; } ShortEvents;

static inline ShortEvents short_events(const Framing *framing) {
    const Field *state = framing->state.at;
    long prefix_size = state->prefix_size, room = framing->out.size - state->segment_bytes;
    bool has_segments = state->segments < framing->segments.rows;
    long size_max = has_segments ? SEGMENT_MIN : PACKET_MAX - prefix_size;
    return (ShortEvents){prefix_of(framing), prefix_size, state->filters, size_max, room};
}

/* Frame the events of source[start:end] up to the first that is not whole and short: returns its offset. The position
in the output and the number of the next packet move. FULL where there is no room for an event. */
static inline long frame_short(Bytes source, long start, long end, ShortEvents wanted, Bytes out, long *position,
                               long *sequence, long *status) {
    long readable = source.size - 32, writable = out.size - 32, offset = start, number = *sequence;
    byte *at = out.at + *position;
    while (end - offset >= EVENT_HEADER) {
        const byte *event = source.at + offset;
        long size = size_of(event), payload = size + wanted.prefix_size, used = at - out.at;
        if (size < EVENT_HEADER || size > end - offset || size >= wanted.size_max)
            break;
        if (!wanted.filters || !is_left_out(event, wanted.filters)) {
            if (used + payload + 4 > wanted.room) {
                *status = FULL;
                break;
            }
            store64(at, (uint64_t)payload | (uint64_t)number << 24 | wanted.prefix << 32);
            at += 4 + wanted.prefix_size;
            copy_event(at, event, size, offset + size <= readable && used + payload + 4 <= writable);
            at += size;
            number = (number + 1) & 0xFF;
        }
        offset += size;
    }
    *position = at - out.at;
    *sequence = number;
    return offset;
}

/* Hold what is here of a cut event header; returns how many bytes. */
static inline long hold_head(const byte *at, long here, Field *state, byte *head) {
    long taken = min64(EVENT_HEADER - state->head_held, here);
    copy(head + state->head_held, at, taken);
    state->head_held += taken;
    return taken;
}

/* As `hold_head`, and begin the event if that is all; FALLBACK where its size makes no sense. */
static long take_head(const byte *at, long here, const Framing *framing, long *status) {
    Field *state = framing->state.at;
    byte *head = framing->head.at;
    long taken = hold_head(at, here, state, head);
    if (state->head_held < EVENT_HEADER)
        return taken;
    long size = size_of(head);
    if (size < EVENT_HEADER || size > EVENT_MAX) {
        *status = FALLBACK;
        return taken;
    }
    state->head_held = 0;
    state->event_left = size - EVENT_HEADER;
    state->is_dropped = is_left_out(head, state->filters);
    if (!state->is_dropped)
        begin_event(head, size, framing);
    return taken;
}

/* Frame source[start:end], which may begin and end inside an event. Long pieces are noted as segments while there is
room for them; together with the output they are never longer than `out`. Returns where it stopped, and in `status` why:
DONE, FULL, or FALLBACK where an event's size makes no sense; `state` and `head` hold what is needed to continue. */
static long frame_bytes(Bytes source, long start, long end, const Framing *framing, long *status) {
    Field *state = framing->state.at;
    long offset = start;
    *status = DONE;
    while (true) {
        if (state->event_left == 0 && state->head_held == 0)
            offset = frame_short(source, offset, end, short_events(framing), framing->out, &state->out,
                                 &state->sequence, status);
        if (*status != DONE || offset >= end)
            return offset;
        if (room_in(framing) < ROOM) {
            *status = FULL;
            return offset;
        }
        long taken = min64(state->event_left, end - offset);
        if (state->event_left == 0) {
            offset += take_head(source.at + offset, end - offset, framing, status);
        } else {
            if (!state->is_dropped) {
                continue_packet(state, framing->out.at, state->event_left);
                taken = min64(taken, min64(state->packet_left, room_in(framing) - 8));
                put_piece(source.at, offset, taken, framing);
                state->packet_left -= taken;
            }
            offset += taken;
            state->event_left -= taken;
        }
        if (state->event_left == 0 && !state->is_dropped && state->empty_tail) {
            begin_packet(state, framing->out.at, 0);
            state->empty_tail = 0;
        }
    }
}

/* Add `delta` to the numbers of packets, the first of which begins at `first`. */
KERNEL(renumber) {
    for (long offset = a->first; offset < a->size;) {
        byte *packet = a->out.at + offset;
        packet[3] = (byte)(packet[3] + a->delta);
        offset += 4 + (load32(packet) & PACKET_MAX);
    }
    return 0;
}

KERNEL(frame_bytes) { return frame_bytes(a->source, a->start, a->end, &a->framing, more); }
