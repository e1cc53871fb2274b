/* Kernels that frame events as packets. The reference, which puts the same bytes on the wire:
`ibbmaster.replication.dump.framing`. */

#define MARKED EventFlag_SKIP_REPLICATION
#define ROOM 64 /* bytes that are kept free for headers, checksums, and copies that go too far */

/* Whether an event is left out; its header is at `event`. */
static inline bool is_left_out(const uint8_t *event, int64_t filters) {
    return (filters & LEAVES_OUT_ANNOTATE && event[TYPE_OFFSET] == ANNOTATE_ROWS) ||
           (filters & LEAVES_OUT_MARKED && load16(event + FLAGS_OFFSET) & MARKED);
}

/* What is in the output, to go back to. */
typedef struct { int64_t out, sequence, segments, segment_bytes; } Mark;

static inline Mark mark_of(const int64_t *state) {
    return (Mark){state[Field_OUT], state[Field_SEQUENCE], state[Field_SEGMENTS], state[Field_SEGMENT_BYTES]};
}

static inline void go_back(int64_t *state, Mark mark) {
    state[Field_OUT] = mark.out;
    state[Field_SEQUENCE] = mark.sequence;
    state[Field_SEGMENTS] = mark.segments;
    state[Field_SEGMENT_BYTES] = mark.segment_bytes;
}

/* How many bytes the output has room for. */
static inline int64_t room_in(const Framing *framing) {
    const int64_t *state = framing->state.at;
    return framing->out.size - state[Field_SEGMENT_BYTES] - state[Field_OUT];
}

/* The header of a packet of `payload` bytes. */
static inline void begin_packet(int64_t *state, uint8_t *out, int64_t payload) {
    store32(out + state[Field_OUT], payload | state[Field_SEQUENCE] << 24);
    state[Field_OUT] += 4;
    state[Field_SEQUENCE] = (state[Field_SEQUENCE] + 1) & 0xFF;
}

/* Begin another packet of an event that has so many bytes left if the one before is full. */
static inline void continue_packet(int64_t *state, uint8_t *out, int64_t left) {
    if (state[Field_PACKET_LEFT] == 0) {
        state[Field_PACKET_LEFT] = min64(left, PACKET_MAX);
        begin_packet(state, out, state[Field_PACKET_LEFT]);
    }
}

/* Begin the first packet of an event of `size` bytes, with its header; returns where that is. */
static uint8_t *begin_event(const uint8_t *head, int64_t size, const Framing *framing) {
    int64_t *state = framing->state.at, prefix_size = state[Field_PREFIX_SIZE], payload = size + prefix_size;
    state[Field_EMPTY_TAIL] = payload % PACKET_MAX == 0;
    state[Field_PACKET_LEFT] = 0;
    continue_packet(state, framing->out.at, payload);
    uint8_t *at = framing->out.at + state[Field_OUT];
    memcpy(at, framing->prefix.at, (size_t)prefix_size);
    memcpy(at + prefix_size, head, EVENT_HEADER);
    state[Field_OUT] += prefix_size + EVENT_HEADER;
    state[Field_PACKET_LEFT] -= prefix_size + EVENT_HEADER;
    return at + prefix_size;
}

/* Bytes of an event after what is in the output: a long piece is only noted, as long as there is room for that. */
static void put_piece(const uint8_t *source, int64_t start, int64_t size, const Framing *framing) {
    int64_t *state = framing->state.at;
    if (size >= SEGMENT_MIN && state[Field_SEGMENTS] < framing->segments.rows) {
        int64_t *segment = framing->segments.at + 3 * state[Field_SEGMENTS];
        segment[0] = state[Field_OUT];
        segment[1] = start;
        segment[2] = size;
        state[Field_SEGMENTS]++;
        state[Field_SEGMENT_BYTES] += size;
        return;
    }
    memcpy(framing->out.at + state[Field_OUT], source + start, (size_t)size);
    state[Field_OUT] += size;
}

/* The bytes in front of each event, as a number. */
static inline uint64_t prefix_of(const Framing *framing) {
    int64_t bits = 8 * framing->state.at[Field_PREFIX_SIZE];
    return (uint64_t)load32(framing->prefix.at) & ((UINT64_C(1) << bits) - 1);
}

/* What is in front of each event, as a number, and its bytes; filters; events of less bytes than `size_max` are short;
where in the output none of them ends. */
typedef struct { uint64_t prefix; int64_t prefix_size, filters, size_max, room; } ShortEvents;

static inline ShortEvents short_events(const Framing *framing) {
    const int64_t *state = framing->state.at;
    int64_t prefix_size = state[Field_PREFIX_SIZE], room = framing->out.size - state[Field_SEGMENT_BYTES];
    bool has_segments = state[Field_SEGMENTS] < framing->segments.rows;
    int64_t size_max = has_segments ? SEGMENT_MIN : PACKET_MAX - prefix_size;
    return (ShortEvents){prefix_of(framing), prefix_size, state[Field_FILTERS], size_max, room};
}

/* Frame the events of source[start:end] that are whole and short, up to the first that is not: returns its offset.

The position in the output and the number of the next packet move. FULL where there is no room for an event. */
static inline int64_t frame_short(Bytes source, int64_t start, int64_t end, ShortEvents wanted, Bytes out,
                                  int64_t *position, int64_t *sequence, int64_t *status) {
    int64_t readable = source.size - 32, writable = out.size - 32, offset = start, number = *sequence;
    uint8_t *at = out.at + *position;
    while (end - offset >= EVENT_HEADER) {
        const uint8_t *event = source.at + offset;
        int64_t size = size_of(event), payload = size + wanted.prefix_size, used = at - out.at;
        if (size < EVENT_HEADER || size > end - offset || size >= wanted.size_max)
            break;
        if (!wanted.filters || !is_left_out(event, wanted.filters)) {
            if (used + payload + 4 > wanted.room) {
                *status = Status_FULL;
                break;
            }
            /* bytes too many are overwritten */
            store64(at, (uint64_t)payload | (uint64_t)number << 24 | wanted.prefix << 32);
            at += 4 + wanted.prefix_size;
            if (size <= SMALL_EVENT && offset + size <= readable && used + payload + 4 <= writable)
                for (int64_t step = 0; step < size; step += 32) /* cheaper than a call for a few of them */
                    memcpy(at + step, event + step, 32);
            else
                memcpy(at, event, (size_t)size);
            at += size;
            number = (number + 1) & 0xFF;
        }
        offset += size;
    }
    *position = at - out.at;
    *sequence = number;
    return offset;
}

/* Hold what is here of an event header, of which a part may be held; returns how many bytes it was. */
static inline int64_t hold_head(const uint8_t *at, int64_t here, int64_t *state, uint8_t *head) {
    int64_t taken = min64(EVENT_HEADER - state[Field_HEAD_HELD], here);
    memcpy(head + state[Field_HEAD_HELD], at, (size_t)taken);
    state[Field_HEAD_HELD] += taken;
    return taken;
}

/* Take what is here of an event header, and begin the event if that is all; returns how many bytes it was.

FALLBACK where an event's size makes no sense. */
static int64_t take_head(const uint8_t *at, int64_t here, const Framing *framing, int64_t *status) {
    int64_t *state = framing->state.at;
    uint8_t *head = framing->head.at;
    int64_t taken = hold_head(at, here, state, head);
    if (state[Field_HEAD_HELD] < EVENT_HEADER)
        return taken;
    int64_t size = size_of(head);
    if (size < EVENT_HEADER || size > EVENT_MAX) {
        *status = Status_FALLBACK;
        return taken;
    }
    state[Field_HEAD_HELD] = 0;
    state[Field_EVENT_LEFT] = size - EVENT_HEADER;
    state[Field_IS_DROPPED] = is_left_out(head, state[Field_FILTERS]);
    if (!state[Field_IS_DROPPED])
        begin_event(head, size, framing);
    return taken;
}

/* Frame the events that lie in source[start:end], which may begin and end inside one.

As long as there is room in `segments`, long pieces of events are not copied, but noted there: where in the output
they belong, where in the source they are, and their size. Output and these pieces together are never longer than
`out`. Returns where it stopped, and in `status` why: DONE, FULL, or FALLBACK where an event's size makes no sense;
`state` and `head` hold what is needed to continue. */
static int64_t frame_bytes(Bytes source, int64_t start, int64_t end, const Framing *framing, int64_t *status) {
    int64_t *state = framing->state.at, offset = start;
    *status = Status_DONE;
    while (true) {
        if (state[Field_EVENT_LEFT] == 0 && state[Field_HEAD_HELD] == 0)
            offset = frame_short(source, offset, end, short_events(framing), framing->out, &state[Field_OUT],
                                 &state[Field_SEQUENCE], status);
        if (*status != Status_DONE || offset >= end)
            return offset;
        if (room_in(framing) < ROOM) {
            *status = Status_FULL;
            return offset;
        }
        int64_t taken = min64(state[Field_EVENT_LEFT], end - offset);
        if (state[Field_EVENT_LEFT] == 0) {
            offset += take_head(source.at + offset, end - offset, framing, status);
        } else {
            if (!state[Field_IS_DROPPED]) {
                continue_packet(state, framing->out.at, state[Field_EVENT_LEFT]);
                taken = min64(taken, min64(state[Field_PACKET_LEFT], room_in(framing) - 8));
                put_piece(source.at, offset, taken, framing);
                state[Field_PACKET_LEFT] -= taken;
            }
            offset += taken;
            state[Field_EVENT_LEFT] -= taken;
        }
        if (state[Field_EVENT_LEFT] == 0 && !state[Field_IS_DROPPED] && state[Field_EMPTY_TAIL]) {
            begin_packet(state, framing->out.at, 0);
            state[Field_EMPTY_TAIL] = 0;
        }
    }
}

/* Add `delta` to the numbers of packets, the first of which begins at `first`. */
KERNEL(renumber) {
    for (int64_t offset = a->first; offset < a->size;) {
        uint8_t *packet = a->out.at + offset;
        packet[3] = (uint8_t)(packet[3] + a->delta);
        offset += 4 + (load32(packet) & PACKET_MAX);
    }
    return 0;
}

KERNEL(frame_bytes) { return frame_bytes(a->source, a->start, a->end, &a->framing, more); }
