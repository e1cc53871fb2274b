/* Kernels that frame the events of traditional files as packets.

An event is verified, and goes out as it is stored; or as an engine's stream has it, without checksum and end position.

The references: `ibbmaster.logs.classic.groups` with `ibbmaster.replication.dump.rewriting` and `ibbmaster.replication.dump.framing`. */

#define AROUND_GROUP_MAX (1 << 19) /* bytes of an event outside of groups, and of a GTID event */
#define LARGE_MIN (1 << 19)        /* bytes: a longer event may be framed before all of it was verified */

/* Of the checksum that each event goes out with. */
static inline int64_t trailer_bytes(const int64_t *state) {
    return state[ClassicField_IS_STORED] ? state[ClassicField_CHECKSUM_BYTES] : 0;
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
    uint8_t *head = begin_event(event, kept + trailer, framing);
    if (!state[ClassicField_IS_STORED])
        strip(head, kept);
    state[ClassicField_PAYLOAD_LEFT] = kept + trailer - EVENT_HEADER;
}

/* Frame what is here of the current event; DONE after it, and FALLBACK if its checksum is wrong. */
static int64_t frame_large(const uint8_t *source, int64_t end, const Framing *framing) {
    int64_t *state = framing->state.at;
    uint8_t *out = framing->out.at;
    int64_t checksum_bytes = state[ClassicField_CHECKSUM_BYTES];
    bool is_dropped = state[Field_IS_DROPPED];
    while (state[Field_EVENT_LEFT] > 0) {
        int64_t at = state[ClassicField_READ_AT], taken = min64(state[Field_EVENT_LEFT], end - at);
        if (taken <= 0)
            return Status_NEED_MORE;
        if (!is_dropped) {
            int64_t room = room_in(framing) - ROOM;
            if (room <= 0)
                return Status_FULL;
            continue_packet(state, out, state[ClassicField_PAYLOAD_LEFT]);
            taken = min64(taken, min64(state[Field_PACKET_LEFT], room));
            put_piece(source, at, taken, framing);
            state[Field_PACKET_LEFT] -= taken;
            state[ClassicField_PAYLOAD_LEFT] -= taken;
        }
        if (checksum_bytes > 0)
            state[ClassicField_CHECKSUM] = crc32(source + at, taken, state[ClassicField_CHECKSUM]);
        state[ClassicField_READ_AT] += taken;
        state[Field_EVENT_LEFT] -= taken;
    }
    int64_t offset = state[ClassicField_READ_AT];
    if (end - offset < checksum_bytes)
        return Status_NEED_MORE;
    if (checksum_bytes > 0 && load32(source + offset) != state[ClassicField_CHECKSUM])
        return Status_FALLBACK;
    if (!is_dropped) {
        if (room_in(framing) < ROOM)
            return Status_FULL;
        int64_t checksum = state[ClassicField_CHECKSUM];
        for (int64_t left = trailer_bytes(state); left > 0; left--) {
            continue_packet(state, out, state[ClassicField_PAYLOAD_LEFT]);
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

/* Where the framing of groups is: the next event, the kind of its group, where this began, and what was before it. */
typedef struct {
    int64_t offset, kind, group_at, position, last_position;
    Mark mark;
} ClassicPlace;

static inline ClassicPlace place_at(const int64_t *state, int64_t offset, int64_t kind) {
    int64_t position = state[ClassicField_POSITION], last_position = state[ClassicField_LAST_POSITION];
    return (ClassicPlace){offset, kind, offset, position, last_position, mark_of(state)};
}

/* Begin a group with the event that comes next, of `size` bytes: DONE, or why not. */
static inline int64_t begin_classic_group(const uint8_t *event, int64_t size, const Framing *framing, NumberRows skips,
                                          ClassicPlace *place) {
    int64_t *state = framing->state.at, kind = group_kind(event, size - state[ClassicField_CHECKSUM_BYTES]);
    if (kind == NO_GROUP || (skips.rows > 0 && !is_skipped(event, skips)))
        return Status_FALLBACK;
    if (state[Field_PAIRS] >= framing->pairs.rows)
        return Status_FULL;
    *place = place_at(state, place->offset, kind);
    if (state[ClassicField_IN_PARTS]) {
        state[ClassicField_GROUP_OFFSET] = state[ClassicField_SOURCE_OFFSET] + place->offset;
        note_group(event, framing->pairs, state);
    }
    return Status_DONE;
}

/* Frame the next event, or what is here of a large one: DONE, or why it stopped. */
static inline int64_t frame_classic_event(Bytes source, int64_t end, uint64_t prefix, const Framing *framing,
                                          const Roles *roles, NumberRows skips, ClassicPlace *place) {
    int64_t *state = framing->state.at, checksum_bytes = state[ClassicField_CHECKSUM_BYTES];
    int64_t is_in_parts = state[ClassicField_IN_PARTS], passes_over = state[ClassicField_PASSES_OVER];
    if (state[ClassicField_IS_LARGE]) {
        state[ClassicField_READ_AT] = place->offset;
        int64_t status = frame_large(source.at, end, framing);
        place->offset = state[ClassicField_READ_AT];
        place->kind = state[ClassicField_KIND];
        state[Field_GROUPS] += status == Status_DONE && place->kind == NO_GROUP;
        return status;
    }
    int64_t offset = place->offset, here = end - offset, file_offset = state[ClassicField_SOURCE_OFFSET] + offset;
    const uint8_t *event = source.at + offset;
    int64_t size = event_size(event, here, file_offset, checksum_bytes);
    if (size == WRONG)
        return Status_FALLBACK;
    bool is_inside = place->kind != NO_GROUP, is_cut = size == CUT, ends = false;
    if (is_cut && here >= EVENT_HEADER)
        size = size_of(event);
    bool is_large = is_in_parts && is_inside && size > LARGE_MIN;
    if (is_cut && !is_large)
        return Status_NEED_MORE;
    if (is_inside) {
        int64_t role = event_role(event, size - checksum_bytes, roles_in(place->kind, roles)[event[TYPE_OFFSET]]);
        ends = role == ENDS;
        if (role != ENDS && role != CONTINUES)
            return Status_FALLBACK;
    } else if (size > AROUND_GROUP_MAX) {
        return Status_FALLBACK;
    } else if (event[TYPE_OFFSET] == EventType_BINLOG_CHECKPOINT) {
        if (state[ClassicField_IS_STORED]) {
            if (passes_over)
                return Status_FALLBACK; /* it goes out, whatever is skipped around it */
            if (!frame_whole(source, offset, size, prefix, framing))
                return Status_FULL;
        }
        place->offset += size;
        return Status_DONE;
    } else {
        int64_t status = begin_classic_group(event, size, framing, skips, place);
        if (status != Status_DONE)
            return status;
    }
    if (is_large) {
        if (file_offset + size > state[ClassicField_FILE_SIZE])
            return Status_FALLBACK;
        if (room_in(framing) < ROOM)
            return Status_FULL;
        begin_large(event, framing);
        state[ClassicField_IS_LAST] = ends;
        state[ClassicField_KIND] = place->kind;
        place->offset += EVENT_HEADER;
        return Status_DONE;
    }
    if (!passes_over && !frame_whole(source, offset, size, prefix, framing))
        return Status_FULL;
    place->offset += size;
    if (ends) {
        place->kind = NO_GROUP;
        state[Field_GROUPS]++;
        if (!is_in_parts)
            note_group(source.at + place->group_at, framing->pairs, state);
    }
    return Status_DONE;
}

/* Frame the groups of source[READ_AT:end], each if all of it is here; or one of them IN_PARTS.

With `skips`, groups are skipped instead, up to the first that is not one of those: see `is_skipped`; or all, if it has
no row and PASSES_OVER is set. OUT, SEQUENCE, PAIRS and the positions continue from what they were.

Returns why it stopped: NEED_MORE where what comes next is not all here, FULL where there is no room for it, FALLBACK
before what is not as it should be or has to be decided, DONE after a group in parts. An event of LARGE_MIN bytes and
more may go out in parts. */
static int64_t frame_classic(Bytes source, int64_t end, const Framing *framing, const Roles *roles,
                             NumberRows skips) {
    int64_t *state = framing->state.at, is_in_parts = state[ClassicField_IN_PARTS], status;
    state[Field_GROUPS] = state[Field_SEGMENTS] = state[Field_SEGMENT_BYTES] = 0;
    uint64_t prefix = prefix_of(framing);
    ClassicPlace place = place_at(state, state[ClassicField_READ_AT], state[ClassicField_KIND]);
    do
        status = frame_classic_event(source, end, prefix, framing, roles, skips, &place);
    while (status == Status_DONE && !(is_in_parts && state[Field_GROUPS] > 0));
    if (place.kind != NO_GROUP && !is_in_parts) {
        place.offset = place.group_at;
        place.kind = NO_GROUP;
        state[ClassicField_POSITION] = place.position;
        state[ClassicField_LAST_POSITION] = place.last_position;
        go_back(state, place.mark);
    }
    state[ClassicField_READ_AT] = place.offset;
    state[ClassicField_KIND] = place.kind;
    return status;
}

KERNEL(frame_classic) { return frame_classic(a->source, a->end, &a->framing, &a->roles, a->skips); }
