/* Kernels that frame the events of traditional files as packets, or check them. An event is verified, and goes out as
it is stored or as `strip` leaves it. The references: `ibbmaster.logs.classic.groups` with
`ibbmaster.replication.dump.rewriting` and `ibbmaster.replication.dump.framing`; `ibbmaster.logs.classic.verifying`. */

#define AROUND_GROUP_MAX (1 << 19) /* bytes of an event outside of groups, and of a GTID event */
#define LARGE_MIN (1 << 19) /* bytes: a longer event may be framed before all of it was verified */

static inline long trailer_bytes(const Field *state) { return state->is_stored ? state->checksum_bytes : 0; }

static inline void pass_position(Field *state, long size) {
    state->last_position = state->position;
    state->position += size;
}

/* Frame the header of an event that is not all here. */
static void begin_large(const byte *event, const Framing *framing) {
    Field *state = framing->state.at;
    long kept = size_of(event) - state->checksum_bytes, trailer = trailer_bytes(state);
    state->is_large = 1;
    state->event_left = kept - EVENT_HEADER;
    state->checksum = crc32(event, EVENT_HEADER, 0);
    pass_position(state, kept + trailer);
    state->is_dropped = state->passes_over || is_left_out(event, state->filters);
    if (state->is_dropped)
        return;
    byte *head = begin_event(event, kept + trailer, framing);
    if (!state->is_stored)
        strip(head, kept);
    state->payload_left = kept + trailer - EVENT_HEADER;
}

/* Frame what is here of the current event; DONE after it, and FALLBACK if its checksum is wrong. */
static long frame_large(const byte *source, long end, const Framing *framing) {
    Field *state = framing->state.at;
    byte *out = framing->out.at;
    long checksum_bytes = state->checksum_bytes;
    bool is_dropped = state->is_dropped;
    while (state->event_left > 0) {
        long at = state->read_at, taken = min64(state->event_left, end - at);
        if (taken <= 0)
            return NEED_MORE;
        if (!is_dropped) {
            long room = room_in(framing) - ROOM;
            if (room <= 0)
                return FULL;
            continue_packet(state, out, state->payload_left);
            taken = min64(taken, min64(state->packet_left, room));
            put_piece(source, at, taken, framing);
            state->packet_left -= taken;
            state->payload_left -= taken;
        }
        if (checksum_bytes > 0)
            state->checksum = crc32(source + at, taken, state->checksum);
        state->read_at += taken;
        state->event_left -= taken;
    }
    long offset = state->read_at;
    if (end - offset < checksum_bytes)
        return NEED_MORE;
    if (checksum_bytes > 0 && load32(source + offset) != state->checksum)
        return FALLBACK;
    if (!is_dropped) {
        if (room_in(framing) < ROOM)
            return FULL;
        long checksum = state->checksum;
        for (long left = trailer_bytes(state); left > 0; left--, checksum >>= 8) {
            continue_packet(state, out, state->payload_left);
            out[state->out++] = (byte)checksum;
            state->packet_left--;
            state->payload_left--;
        }
        if (state->empty_tail)
            begin_packet(state, out, 0);
    }
    state->read_at = offset + checksum_bytes;
    state->is_large = state->empty_tail = 0;
    if (state->is_last)
        state->kind = state->is_last = 0;
    return DONE;
}

/* Frame a verified event; false where the output has no room for it. */
static inline bool frame_whole(Bytes source, long offset, long size, uint64_t prefix, const Framing *framing) {
    Field *state = framing->state.at;
    const byte *event = source.at + offset;
    long kept = size - state->checksum_bytes + trailer_bytes(state);
    if (!state->passes_over && !is_left_out(event, state->filters)) {
        if (room_in(framing) < kept + ROOM)
            return false;
        byte *packet = framing->out.at + state->out, *copied = packet + 4 + state->prefix_size;
        uint64_t header = (uint64_t)(state->prefix_size + kept) | (uint64_t)state->sequence << 24;
        store64(packet, header | prefix << 32); /* bytes too many are overwritten */
        state->sequence = (state->sequence + 1) & 0xFF;
        bool is_segment = kept >= SEGMENT_MIN && state->segments < framing->segments.rows;
        long taken = is_segment ? EVENT_HEADER : kept;
        copy_event(copied, event, taken, offset + taken <= source.size - 32);
        if (!state->is_stored)
            strip(copied, kept);
        state->out += 4 + state->prefix_size + taken;
        if (is_segment)
            put_piece(source.at, offset + EVENT_HEADER, kept - EVENT_HEADER, framing);
    }
    pass_position(state, kept);
    return true;
}

/* The next event, the kind of its group, where this began, and what was before it. */
typedef struct {
    long offset, kind, group_at, position, last_position;
    Mark mark;
} ClassicPlace;

static inline ClassicPlace place_at(const Field *state, long offset, long kind) {
    return (ClassicPlace){offset, kind, offset, state->position, state->last_position, mark_of(state)};
}

static inline long begin_classic_group(const byte *event, long size, const Framing *framing, Rows skips,
                                       ClassicPlace *place) {
    Field *state = framing->state.at;
    long kind = group_kind(event, size - state->checksum_bytes);
    if (kind == NO_GROUP || (skips.rows > 0 && skip_order(event, skips) >= 0))
        return FALLBACK;
    if (state->pairs >= framing->pairs.rows)
        return FULL;
    *place = place_at(state, place->offset, kind);
    if (state->in_parts) {
        state->group_offset = state->source_offset + place->offset;
        note_group(event, framing->pairs, state);
    }
    return DONE;
}

/* Frame the next event, or what is here of a large one: DONE, or why it stopped. */
static inline long frame_classic_event(Bytes source, long end, uint64_t prefix, const Framing *framing,
                                       const Roles *roles, Rows skips, ClassicPlace *place) {
    Field *state = framing->state.at;
    long checksum_bytes = state->checksum_bytes, is_in_parts = state->in_parts;
    if (state->is_large) {
        state->read_at = place->offset;
        long status = frame_large(source.at, end, framing);
        place->offset = state->read_at;
        place->kind = state->kind;
        state->groups += status == DONE && place->kind == NO_GROUP;
        return status;
    }
    long offset = place->offset, here = end - offset, file_offset = state->source_offset + offset;
    const byte *event = source.at + offset;
    long size = event_size(event, here, file_offset, checksum_bytes);
    if (size == WRONG)
        return FALLBACK;
    bool is_inside = place->kind != NO_GROUP, is_cut = size == CUT, ends = false;
    if (is_cut && here < EVENT_HEADER)
        return NEED_MORE;
    size = size_of(event);
    long kept = size - checksum_bytes, role = is_inside ? roles_in(place->kind, roles)[event[TYPE_OFFSET]] : NOT_INSIDE;
    bool may_part = state->passes_over ? is_cut && (role != MAY_END || kept > ENDING_QUERY_MAX) : size > LARGE_MIN;
    bool is_large = is_in_parts && is_inside && may_part;
    if (is_cut && !is_large)
        return NEED_MORE;
    if (is_inside) {
        role = event_role(event, kept, role);
        ends = role == ENDS;
        if (role != ENDS && role != CONTINUES)
            return FALLBACK;
    } else if (size > AROUND_GROUP_MAX) {
        return FALLBACK;
    } else if (event[TYPE_OFFSET] == EventType_BINLOG_CHECKPOINT) {
        if (state->is_stored && state->passes_over)
            return FALLBACK; /* it goes out, whatever is skipped around it */
        if (state->is_stored && !frame_whole(source, offset, size, prefix, framing))
            return FULL;
        place->offset += size;
        return DONE;
    } else {
        long status = begin_classic_group(event, size, framing, skips, place);
        if (status != DONE)
            return status;
    }
    if (is_large) {
        if (file_offset + size > state->file_size)
            return FALLBACK;
        if (!state->passes_over && room_in(framing) < ROOM)
            return FULL;
        begin_large(event, framing);
        state->is_last = ends;
        state->kind = place->kind;
        place->offset += EVENT_HEADER;
        return DONE;
    }
    if (!frame_whole(source, offset, size, prefix, framing))
        return FULL;
    place->offset += size;
    if (ends) {
        place->kind = NO_GROUP;
        state->groups++;
        if (!is_in_parts)
            note_group(source.at + place->group_at, framing->pairs, state);
    }
    return DONE;
}

/* Frame the groups of source[READ_AT:end], each if all of it is here; or one of them IN_PARTS. With `skips`, groups are
skipped instead while `skip_order` is -1; or all, if it has no row and PASSES_OVER is set. OUT, SEQUENCE, PAIRS and the
positions continue. Returns why it stopped: NEED_MORE where the next event is not all here, FULL where the room ends,
FALLBACK before what is not as it should be or has to be decided, DONE after a group in parts. An event longer than
LARGE_MIN may go out in parts, and any one is passed over in parts. */
static long frame_classic(Bytes source, long end, const Framing *framing, const Roles *roles, Rows skips) {
    Field *state = framing->state.at;
    long is_in_parts = state->in_parts, status;
    state->groups = state->segments = state->segment_bytes = 0;
    uint64_t prefix = prefix_of(framing);
    ClassicPlace place = place_at(state, state->read_at, state->kind);
    do
        status = frame_classic_event(source, end, prefix, framing, roles, skips, &place);
    while (status == DONE && !(is_in_parts && state->groups > 0));
    if (place.kind != NO_GROUP && !is_in_parts) {
        place.offset = place.group_at;
        place.kind = NO_GROUP;
        state->position = place.position;
        state->last_position = place.last_position;
        go_back(state, place.mark);
    }
    state->read_at = place.offset;
    state->kind = place.kind;
    return status;
}

KERNEL(frame_classic) { return frame_classic(a->source, a->end, &a->framing, &a->roles, a->skips); }

/* Pass over groups that are right, plain ones first. POSITION counts bytes of events. */
KERNEL(check_groups) {
    Field *state = a->framing.state.at;
    long count = 0, total, after;
    while (!state->in_parts && state->pairs < a->framing.pairs.rows &&
           (after = group_end(a->source, state->read_at, state->source_offset, state->checksum_bytes, 0, NULL,
                              &a->roles, &total)) >= 0) {
        note_group(a->source.at + state->read_at, a->framing.pairs, state);
        state->position += total;
        state->read_at = after;
        count++;
    }
    long status = frame_classic(a->source, a->source.size, &a->framing, &a->roles, (Rows){0});
    state->groups += count;
    return status;
}
