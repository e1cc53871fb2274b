/* Kernels that frame the events of traditional files as packets.

An event is verified, and goes out as it is stored; or as an engine's stream has it, without checksum and end position.

The references: `ibbmaster.classic.groups` with `ibbmaster.dump.rewriting` and `ibbmaster.dump.framing`. */

#define AROUND_GROUP_MAX (1 << 19) /* bytes of an event outside of groups, and of a GTID event */
#define LARGE_MIN (1 << 19)        /* bytes: a longer event may be framed before all of it was verified */
#define ROOM 64                    /* bytes that are kept free for headers, checksums, and copies that go too far */

/* Of the checksum that each event goes out with. */
static inline int64_t trailer_bytes(const int64_t *state) {
    return state[ClassicField_IS_STORED] ? state[ClassicField_CHECKSUM_BYTES] : 0;
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

/* Begin another packet of a large event if the one before is full. */
static inline void continue_packet(int64_t *state, uint8_t *out) {
    if (state[Field_PACKET_LEFT] == 0) {
        state[Field_PACKET_LEFT] = min64(state[ClassicField_PAYLOAD_LEFT], PACKET_MAX);
        begin_packet(state, out, state[Field_PACKET_LEFT]);
    }
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

/* Have an event be as an engine's stream has it. */
static inline void strip(uint8_t *event, int64_t size) {
    store32(event + SIZE_OFFSET, size);
    store32(event + LOG_POS_OFFSET, 0);
}

/* Frame the header of an event that is longer than what is here of it. */
static void begin_large(const uint8_t *event, const Framing *framing) {
    int64_t *state = framing->state.at;
    int64_t kept = size_of(event) - state[ClassicField_CHECKSUM_BYTES], trailer = trailer_bytes(state);
    state[ClassicField_IS_LARGE] = 1;
    state[Field_EVENT_LEFT] = kept - EVENT_HEADER;
    state[ClassicField_CHECKSUM] = crc32(event, EVENT_HEADER, 0);
    if (!state[ClassicField_PASSES_OVER]) {
        state[ClassicField_LAST_POSITION] = state[ClassicField_POSITION];
        state[ClassicField_POSITION] += kept + trailer;
    }
    state[Field_IS_DROPPED] = state[ClassicField_PASSES_OVER] || is_left_out(event, state[Field_FILTERS]);
    if (state[Field_IS_DROPPED])
        return;
    int64_t prefix_size = state[Field_PREFIX_SIZE], payload = prefix_size + kept + trailer;
    state[Field_EMPTY_TAIL] = payload % PACKET_MAX == 0;
    state[Field_PACKET_LEFT] = min64(payload, PACKET_MAX);
    begin_packet(state, framing->out.at, state[Field_PACKET_LEFT]);
    uint8_t *at = framing->out.at + state[Field_OUT];
    memcpy(at, framing->prefix.at, (size_t)prefix_size);
    memcpy(at + prefix_size, event, EVENT_HEADER);
    if (!state[ClassicField_IS_STORED])
        strip(at + prefix_size, kept);
    state[Field_OUT] += prefix_size + EVENT_HEADER;
    state[Field_PACKET_LEFT] -= prefix_size + EVENT_HEADER;
    state[ClassicField_PAYLOAD_LEFT] = payload - prefix_size - EVENT_HEADER;
}

/* Frame what is here of the current event; DONE after it, and FALLBACK if its checksum is wrong. */
static int64_t frame_large(const uint8_t *source, int64_t end, const Framing *framing) {
    int64_t *state = framing->state.at;
    uint8_t *out = framing->out.at;
    int64_t offset = state[ClassicField_READ_AT], checksum_bytes = state[ClassicField_CHECKSUM_BYTES];
    bool is_dropped = state[Field_IS_DROPPED];
    int64_t status = Status_DONE;
    while (state[Field_EVENT_LEFT] > 0) {
        if (offset >= end) {
            status = Status_NEED_MORE;
            break;
        }
        int64_t taken = min64(state[Field_EVENT_LEFT], end - offset);
        if (!is_dropped) {
            int64_t room = room_in(framing) - ROOM;
            if (room <= 0) {
                status = Status_FULL;
                break;
            }
            continue_packet(state, out);
            taken = min64(taken, min64(state[Field_PACKET_LEFT], room));
        }
        if (checksum_bytes > 0)
            state[ClassicField_CHECKSUM] = crc32(source + offset, taken, state[ClassicField_CHECKSUM]);
        if (!is_dropped) {
            put_piece(source, offset, taken, framing);
            state[Field_PACKET_LEFT] -= taken;
            state[ClassicField_PAYLOAD_LEFT] -= taken;
        }
        offset += taken;
        state[Field_EVENT_LEFT] -= taken;
    }
    state[ClassicField_READ_AT] = offset;
    if (status != Status_DONE)
        return status;
    if (end - offset < checksum_bytes)
        return Status_NEED_MORE;
    if (checksum_bytes > 0 && load32(source + offset) != state[ClassicField_CHECKSUM])
        return Status_FALLBACK;
    if (!is_dropped) {
        if (room_in(framing) < ROOM)
            return Status_FULL;
        int64_t checksum = state[ClassicField_CHECKSUM];
        for (int64_t left = trailer_bytes(state); left > 0; left--) {
            continue_packet(state, out);
            out[state[Field_OUT]] = (uint8_t)checksum;
            checksum >>= 8;
            state[Field_OUT]++;
            state[Field_PACKET_LEFT]--;
            state[ClassicField_PAYLOAD_LEFT]--;
        }
        if (state[Field_EMPTY_TAIL])
            begin_packet(state, out, 0);
    }
    state[ClassicField_READ_AT] = offset + checksum_bytes;
    state[ClassicField_IS_LARGE] = state[Field_EMPTY_TAIL] = 0;
    if (state[ClassicField_IS_LAST])
        state[ClassicField_KIND] = state[ClassicField_IS_LAST] = 0;
    return Status_DONE;
}

/* Frame an event that is here and verified; false where the output has no room for it. */
static inline bool frame_whole(Bytes source, int64_t offset, int64_t size, uint64_t prefix, const Framing *framing) {
    int64_t *state = framing->state.at;
    const uint8_t *event = source.at + offset;
    int64_t kept = size - state[ClassicField_CHECKSUM_BYTES] + trailer_bytes(state);
    if (!is_left_out(event, state[Field_FILTERS])) {
        if (room_in(framing) < kept + ROOM)
            return false;
        uint8_t *packet = framing->out.at + state[Field_OUT], *copied = packet + 4 + state[Field_PREFIX_SIZE];
        uint64_t header = (uint64_t)(state[Field_PREFIX_SIZE] + kept) | (uint64_t)state[Field_SEQUENCE] << 24;
        store64(packet, header | prefix << 32); /* bytes too many are overwritten */
        state[Field_SEQUENCE] = (state[Field_SEQUENCE] + 1) & 0xFF;
        bool is_segment = kept >= SEGMENT_MIN && state[Field_SEGMENTS] < framing->segments.rows;
        int64_t taken = is_segment ? EVENT_HEADER : kept;
        if (kept <= SMALL_EVENT && offset + kept <= source.size - 32)
            for (int64_t step = 0; step < kept; step += 32)
                memcpy(copied + step, event + step, 32);
        else
            memcpy(copied, event, (size_t)taken);
        if (!state[ClassicField_IS_STORED])
            strip(copied, kept);
        state[Field_OUT] += 4 + state[Field_PREFIX_SIZE] + taken;
        if (is_segment)
            put_piece(source.at, offset + EVENT_HEADER, kept - EVENT_HEADER, framing);
    }
    state[ClassicField_LAST_POSITION] = state[ClassicField_POSITION];
    state[ClassicField_POSITION] += kept;
    return true;
}

/* Frame the groups of source[READ_AT:end], each if all of it is here; or one of them IN_PARTS.

With `skips`, groups are skipped instead, up to the first that is not one of those: see `is_skipped`; or all, if it has
no row and PASSES_OVER is set. OUT, SEQUENCE, PAIRS and the positions continue from what they were.

Returns why it stopped: NEED_MORE where what comes next is not all here, FULL where there is no room for it, FALLBACK
before what is not as it should be or has to be decided, DONE after a group in parts. An event of LARGE_MIN bytes and
more may go out in parts. */
static int64_t frame_classic(Bytes source, int64_t end, const Framing *framing, const Roles *roles,
                             NumberRows skips) {
    int64_t *state = framing->state.at;
    NumberRows pairs = framing->pairs;
    state[Field_GROUPS] = state[Field_SEGMENTS] = state[Field_SEGMENT_BYTES] = 0;
    int64_t checksum_bytes = state[ClassicField_CHECKSUM_BYTES], source_offset = state[ClassicField_SOURCE_OFFSET];
    bool is_in_parts = state[ClassicField_IN_PARTS], passes_over = state[ClassicField_PASSES_OVER];
    bool is_stored = state[ClassicField_IS_STORED];
    uint64_t prefix = (uint64_t)load32(framing->prefix.at) & ((UINT64_C(1) << (8 * state[Field_PREFIX_SIZE])) - 1);
    int64_t kind = state[ClassicField_KIND], offset = state[ClassicField_READ_AT], group_at = offset;
    int64_t before_out = state[Field_OUT], before_sequence = state[Field_SEQUENCE];
    int64_t before_position = state[ClassicField_POSITION], before_last = state[ClassicField_LAST_POSITION];
    int64_t before_segments = 0, before_segment_bytes = 0;
    int64_t status = Status_DONE;
    while (true) {
        if (state[ClassicField_IS_LARGE]) {
            state[ClassicField_READ_AT] = offset;
            status = frame_large(source.at, end, framing);
            offset = state[ClassicField_READ_AT];
            kind = state[ClassicField_KIND];
            if (status == Status_DONE && kind == NO_GROUP) {
                state[Field_GROUPS]++;
                break;
            }
            if (status != Status_DONE)
                break;
        }
        const uint8_t *event = source.at + offset;
        int64_t size = event_size(event, end - offset, source_offset + offset, checksum_bytes);
        if (size == WRONG) {
            status = Status_FALLBACK;
            break;
        }
        bool is_cut = size == CUT;
        if (is_cut && is_in_parts && kind != NO_GROUP && end - offset >= EVENT_HEADER)
            size = size_of(event);
        bool is_large = is_in_parts && kind != NO_GROUP && size > LARGE_MIN, ends = false;
        if (is_cut && !is_large) {
            status = Status_NEED_MORE;
            break;
        }
        if (kind == NO_GROUP) {
            if (size > AROUND_GROUP_MAX) {
                status = Status_FALLBACK;
                break;
            }
            if (event[TYPE_OFFSET] == EventType_BINLOG_CHECKPOINT) {
                if (is_stored && passes_over) {
                    status = Status_FALLBACK; /* it goes out, whatever is skipped around it */
                    break;
                }
                if (is_stored && !frame_whole(source, offset, size, prefix, framing)) {
                    status = Status_FULL;
                    break;
                }
                offset += size;
                continue;
            }
            int64_t found = group_kind(event, size - checksum_bytes);
            if (found == NO_GROUP || (skips.rows > 0 && !is_skipped(event, skips))) {
                status = Status_FALLBACK;
                break;
            }
            if (state[Field_PAIRS] >= pairs.rows) {
                status = Status_FULL;
                break;
            }
            kind = found;
            group_at = offset;
            before_out = state[Field_OUT];
            before_sequence = state[Field_SEQUENCE];
            before_position = state[ClassicField_POSITION];
            before_last = state[ClassicField_LAST_POSITION];
            before_segments = state[Field_SEGMENTS];
            before_segment_bytes = state[Field_SEGMENT_BYTES];
            if (is_in_parts) {
                state[ClassicField_GROUP_OFFSET] = source_offset + offset;
                note_group(event, pairs, state);
            }
        } else {
            int64_t role = event_role(event, size - checksum_bytes, roles_in(kind, roles)[event[TYPE_OFFSET]]);
            ends = role == ENDS;
            if (role != ENDS && role != CONTINUES) {
                status = Status_FALLBACK;
                break;
            }
        }
        if (is_large) {
            if (source_offset + offset + size > state[ClassicField_FILE_SIZE]) {
                status = Status_FALLBACK;
                break;
            }
            if (room_in(framing) < ROOM) {
                status = Status_FULL;
                break;
            }
            begin_large(event, framing);
            state[ClassicField_IS_LAST] = ends;
            offset += EVENT_HEADER;
            state[ClassicField_KIND] = kind;
            continue;
        }
        if (!passes_over && !frame_whole(source, offset, size, prefix, framing)) {
            status = Status_FULL;
            break;
        }
        offset += size;
        if (ends) {
            kind = NO_GROUP;
            state[Field_GROUPS]++;
            if (is_in_parts) {
                status = Status_DONE;
                break;
            }
            note_group(source.at + group_at, pairs, state);
        }
    }
    if (kind != NO_GROUP && !is_in_parts) {
        offset = group_at;
        kind = NO_GROUP;
        state[Field_OUT] = before_out;
        state[Field_SEQUENCE] = before_sequence;
        state[ClassicField_POSITION] = before_position;
        state[ClassicField_LAST_POSITION] = before_last;
        state[Field_SEGMENTS] = before_segments;
        state[Field_SEGMENT_BYTES] = before_segment_bytes;
    }
    state[ClassicField_READ_AT] = offset;
    state[ClassicField_KIND] = kind;
    return status;
}

KERNEL(frame_classic) { return frame_classic(a->source, a->end, &a->framing, &a->roles, a->skips); }
