/* The kernel that checks plain groups of a traditional binlog. The reference: `ibbmaster.logs.classic.verifying`. */

/* Whether row events come in fragments, which have an order. */
static inline bool has_fragments(const uint8_t *source, int64_t offset, int64_t end) {
    for (; offset < end; offset += size_of(source + offset))
        if (source[offset + TYPE_OFFSET] == PARTIAL_ROW_DATA)
            return true;
    return false;
}

/* Check groups of source[READ_AT:], and note them; GROUPS and PAIRS continue, OUT has bytes of events.

Stops, with READ_AT, before a group that is not plain, not whole here, or not as it should be. Returns 1 if it may be
plain and is not whole. */
KERNEL(check_classic_groups) {
    const uint8_t *source = a->source.at;
    Conversion *numbers = a->numbers.at;
    Field *state = a->state.at;
    NumberRows pairs = a->pairs;
    int64_t offset = numbers->read_at;
    bool is_cut = false;
    while (state->pairs < pairs.rows) {
        int64_t total, after = group_end(source, offset, a->source.size, numbers, &a->roles, &total);
        is_cut = after == CUT_GROUP;
        if (after < 0 || has_fragments(source, offset, after))
            break;
        note_group(source + offset, pairs, state);
        state->groups++;
        state->out += total;
        offset = after;
    }
    numbers->read_at = offset;
    return is_cut;
}

/* Read the header of the event that comes next in a long group, of which `here` bytes are here, and say what it does
there.

NEED_MORE where more of it must be here, FALLBACK for the reference. */
static int64_t begin_long_event(const uint8_t *event, int64_t here, int64_t file_offset, int64_t checksum_bytes,
                                const Roles *roles, LongGroup *group) {
    if (here < EVENT_HEADER)
        return Status_NEED_MORE;
    int64_t size = size_of(event), log_pos = load32(event + LOG_POS_OFFSET), event_type = event[TYPE_OFFSET];
    int64_t kept = size - checksum_bytes;
    if (kept < EVENT_HEADER || kept > EVENT_MAX)
        return Status_FALLBACK;
    if ((log_pos != 0 && log_pos != ((file_offset + size) & 0xFFFFFFFF)) || event_type == PARTIAL_ROW_DATA)
        return Status_FALLBACK;
    int64_t role = roles_in(group->kind, roles)[event_type];
    if (role == MAY_END) {
        if (kept > ENDING_QUERY_MAX)
            role = CONTINUES;
        else if (size > here)
            return Status_NEED_MORE;
        else
            role = event_role(event, kept, role);
    }
    if (role != CONTINUES && role != ENDS)
        return Status_FALLBACK;
    group->role = role;
    group->left = size;
    group->checksum = 0;
    group->bytes += kept;
    return Status_DONE;
}

/* Take the GTID event that a long group begins with; returns its size, 0 if it is not here or for the reference. */
static int64_t begin_long_group(const uint8_t *event, int64_t here, int64_t file_offset, int64_t checksum_bytes,
                                LongGroup *group, uint8_t *head) {
    int64_t size = event_size(event, here, file_offset, checksum_bytes);
    if (size <= CUT)
        return 0;
    int64_t kind = group_kind(event, size - checksum_bytes);
    if (kind == NO_GROUP || event[GTID_FLAGS_OFFSET] & HAS_XID)
        return 0;
    memcpy(head, event, GROUP_BEGIN);
    group->kind = kind;
    group->bytes = size - checksum_bytes;
    return size;
}

/* Check what source[READ_AT:] has of a plain group that may go on behind it, and note it at its end.

DONE with READ_AT after it, NEED_MORE with READ_AT where it goes on, FALLBACK if it is for the reference. */
KERNEL(check_long_group) {
    const uint8_t *source = a->source.at;
    Conversion *numbers = a->numbers.at;
    LongGroup *group = a->group.at;
    Field *state = a->state.at;
    int64_t end = a->source.size;
    int64_t checksum_bytes = numbers->checksum_bytes, base = numbers->source_offset;
    int64_t offset = numbers->read_at;
    int64_t status = Status_DONE;
    if (group->kind == NO_GROUP) {
        const uint8_t *at = source + offset;
        int64_t size = begin_long_group(at, end - offset, base + offset, checksum_bytes, group, a->head.at);
        if (size == 0)
            return Status_FALLBACK;
        offset += size;
    }
    while (status == Status_DONE) {
        const uint8_t *at = source + offset;
        if (group->left == 0) {
            status = begin_long_event(at, end - offset, base + offset, checksum_bytes, &a->roles, group);
            continue;
        }
        int64_t piece = min64(group->left - checksum_bytes, end - offset);
        if (piece > 0) {
            if (checksum_bytes > 0)
                group->checksum = crc32(at, piece, group->checksum);
            offset += piece;
            group->left -= piece;
        }
        if (group->left > checksum_bytes || end - offset < checksum_bytes) {
            status = Status_NEED_MORE;
            continue;
        }
        if (checksum_bytes > 0 && load32(source + offset) != group->checksum)
            return Status_FALLBACK;
        offset += checksum_bytes;
        group->left = 0;
        if (group->role == ENDS) {
            note_group(a->head.at, a->pairs, state);
            state->groups++;
            state->out += group->bytes;
            break;
        }
    }
    numbers->read_at = offset;
    return status;
}
