/* Kernels that frame events as packets. The reference, which puts the same bytes on the wire:
`ibbmaster.dump.framing`. */

#define MARKED EventFlag_SKIP_REPLICATION

/* Whether an event is left out; its header is at `event`. */
static inline bool is_left_out(const uint8_t *event, int64_t filters) {
    return (filters & LEAVES_OUT_ANNOTATE && event[TYPE_OFFSET] == ANNOTATE_ROWS) ||
           (filters & LEAVES_OUT_MARKED && load16(event + FLAGS_OFFSET) & MARKED);
}

/* Frame the events that lie in source[start:end], which may begin and end inside one.

As long as there is room in `segments`, long pieces of events are not copied, but noted there: where in the output
they belong, where in the source they are, and their size. Output and these pieces together are never longer than
`out`. Returns where it stopped, and in `stopped` why: DONE, FULL, or FALLBACK where an event's size makes no sense;
`state` and `head` hold what is needed to continue. */
static int64_t frame_bytes(Bytes source, int64_t start, int64_t end, const Framing *framing, int64_t *stopped) {
    int64_t *state = framing->state.at;
    uint8_t *head = framing->head.at, *out = framing->out.at;
    const uint8_t *prefix = framing->prefix.at;
    NumberRows segments = framing->segments;
    int64_t offset = start, position = state[Field_OUT];
    int64_t room = framing->out.size - state[Field_SEGMENT_BYTES];
    int64_t prefix_size = state[Field_PREFIX_SIZE], filters = state[Field_FILTERS];
    int64_t sequence = state[Field_SEQUENCE];
    int64_t whole_max = state[Field_SEGMENTS] < segments.rows ? SEGMENT_MIN : PACKET_MAX - prefix_size;
    int64_t status = Status_DONE;
    while (offset < end) {
        if (state[Field_EVENT_LEFT] == 0 && state[Field_HEAD_HELD] == 0 && end - offset >= EVENT_HEADER) {
            int64_t size = size_of(source.at + offset);
            if (size <= end - offset && size >= EVENT_HEADER && size < whole_max) {
                if (filters && is_left_out(source.at + offset, filters)) {
                    offset += size;
                    continue;
                }
                if (room - position < size + prefix_size + 4) {
                    status = Status_FULL;
                    break;
                }
                store32(out + position, (size + prefix_size) | (sequence << 24));
                memcpy(out + position + 4, prefix, (size_t)prefix_size);
                memcpy(out + position + 4 + prefix_size, source.at + offset, (size_t)size);
                position += 4 + prefix_size + size;
                sequence = (sequence + 1) & 0xFF;
                offset += size;
                continue;
            }
        }
        if (room - position < 64) {
            status = Status_FULL;
            break;
        }
        if (state[Field_EVENT_LEFT] == 0) {
            int64_t taken = min64(EVENT_HEADER - state[Field_HEAD_HELD], end - offset);
            memcpy(head + state[Field_HEAD_HELD], source.at + offset, (size_t)taken);
            offset += taken;
            state[Field_HEAD_HELD] += taken;
            if (state[Field_HEAD_HELD] < EVENT_HEADER)
                break;
            int64_t size = size_of(head);
            if (size < EVENT_HEADER || size > EVENT_MAX) {
                status = Status_FALLBACK;
                break;
            }
            state[Field_HEAD_HELD] = 0;
            state[Field_EVENT_LEFT] = size - EVENT_HEADER;
            state[Field_IS_DROPPED] = is_left_out(head, filters);
            if (state[Field_IS_DROPPED])
                continue;
            int64_t payload = size + prefix_size;
            state[Field_PACKET_LEFT] = min64(payload, PACKET_MAX);
            state[Field_EMPTY_TAIL] = payload % PACKET_MAX == 0;
            store32(out + position, state[Field_PACKET_LEFT] | (sequence << 24));
            sequence = (sequence + 1) & 0xFF;
            memcpy(out + position + 4, prefix, (size_t)prefix_size);
            memcpy(out + position + 4 + prefix_size, head, EVENT_HEADER);
            position += 4 + prefix_size + EVENT_HEADER;
            state[Field_PACKET_LEFT] -= prefix_size + EVENT_HEADER;
        } else if (state[Field_IS_DROPPED]) {
            int64_t taken = min64(state[Field_EVENT_LEFT], end - offset);
            offset += taken;
            state[Field_EVENT_LEFT] -= taken;
        } else {
            if (state[Field_PACKET_LEFT] == 0) {
                state[Field_PACKET_LEFT] = min64(state[Field_EVENT_LEFT], PACKET_MAX);
                store32(out + position, state[Field_PACKET_LEFT] | (sequence << 24));
                sequence = (sequence + 1) & 0xFF;
                position += 4;
            }
            int64_t taken = min64(min64(state[Field_EVENT_LEFT], state[Field_PACKET_LEFT]),
                                  min64(end - offset, room - position - 8));
            if (taken >= SEGMENT_MIN && state[Field_SEGMENTS] < segments.rows) {
                int64_t *segment = segments.at + 3 * state[Field_SEGMENTS];
                segment[0] = position;
                segment[1] = offset;
                segment[2] = taken;
                state[Field_SEGMENTS]++;
                state[Field_SEGMENT_BYTES] += taken;
                room -= taken;
            } else {
                memcpy(out + position, source.at + offset, (size_t)taken);
                position += taken;
            }
            offset += taken;
            state[Field_EVENT_LEFT] -= taken;
            state[Field_PACKET_LEFT] -= taken;
        }
        if (state[Field_EVENT_LEFT] == 0 && !state[Field_IS_DROPPED] && state[Field_EMPTY_TAIL]) {
            store32(out + position, sequence << 24);
            sequence = (sequence + 1) & 0xFF;
            position += 4;
            state[Field_EMPTY_TAIL] = 0;
        }
    }
    state[Field_OUT] = position;
    state[Field_SEQUENCE] = sequence;
    *stopped = status;
    return offset;
}

/* Frame the events in source[start:end], all of them whole, at a position of the output, which ends at `room`.

`prefix` is a number, with the bytes in front of each event. Up to 32 bytes after `room` may be written. Returns the
position after the events, and leaves the number of the next packet; -1 and the number as it was where the bytes are no
events, there is no room, or one is too long. */
static inline int64_t frame_plain(Bytes source, int64_t start, int64_t end, uint8_t *out, int64_t room,
                                  int64_t position, int64_t *sequence, uint64_t prefix, int64_t prefix_size) {
    int64_t readable = source.size - 32, offset = start, number = *sequence;
    while (end - offset >= EVENT_HEADER) {
        const uint8_t *event = source.at + offset;
        int64_t size = size_of(event), payload = size + prefix_size;
        if (size < EVENT_HEADER || size > end - offset || position + payload + 4 > room || payload >= PACKET_MAX)
            return -1;
        /* bytes too many are overwritten */
        store64(out + position, (uint64_t)payload | (uint64_t)number << 24 | prefix << 32);
        position += 4 + prefix_size;
        if (size <= SMALL_EVENT && offset + size <= readable)
            for (int64_t step = 0; step < size; step += 32) /* cheaper than a call for a few of them */
                memcpy(out + position + step, event + step, 32);
        else
            memcpy(out + position, event, (size_t)size);
        position += size;
        offset += size;
        number = (number + 1) & 0xFF;
    }
    if (offset != end)
        return -1;
    *sequence = number;
    return position;
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

KERNEL(frame_bytes) {
    return frame_bytes(a->source, a->start, a->end, &a->framing, more);
}
