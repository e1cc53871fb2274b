/* The kernel that changes numbers, places and checksums of framed events. The references:
`ibbmaster.logs.stages.renumbering`, and `ibbmaster.replication.dump.rewriting` for a traditional primary. */

#define SPARE 64 /* bytes that stay free after the output */

typedef struct { long what, old, becomes; } NumberRule;

/* What a number becomes; `unnamed` if it has no row. */
static inline long number_for(Rows numbers, long what, long old, long unnamed) {
    const NumberRule *rule = numbers.at;
    for (long row = 0; row < numbers.rows; row++, rule++)
        if (rule->what == what && rule->old == old)
            return rule->becomes;
    return unnamed;
}

/* Give a copy of a GTID event of `size` bytes other numbers; false for the reference: XA and two-phase ALTER. */
static bool renumber_head(byte *copy, const byte *event, long size, Rows numbers) {
    long domain = domain_of(event);
    store32(copy + DOMAIN_ID_OFFSET, number_for(numbers, OLD_DOMAIN, domain, domain));
    long step = number_for(numbers, STEP, domain, 0), bits = number_for(numbers, COMMIT_BITS, 0, 0);
    if (step == 0 && bits == 0)
        return true;
    long at = extra_flags_at(event);
    store64(copy + SEQ_NO_OFFSET, sequence_of(event) + (uint64_t)step);
    if (event[GTID_FLAGS_OFFSET] & HAS_COMMIT_ID) {
        byte *end_of_id = copy + FIELDS_OFFSET + COMMIT_ID_BYTES;
        store16(end_of_id - 2, load16(end_of_id - 2) ^ bits);
    }
    return at >= size || !(event[at] & HAS_ALTER_SEQ_NO);
}

/* Where a packet ends that is a whole event; -1 if it is not. */
static inline long packet_end(const byte *source, long offset, long size, long prefix_size) {
    if (size - offset < 4)
        return -1;
    long payload = load32(source + offset) & PACKET_MAX, end = offset + 4 + payload;
    return payload < PACKET_MAX && payload >= prefix_size + EVENT_HEADER && end <= size ? end : -1;
}

/* Copy the packets of source[:size], which are whole groups, with their events changed; returns how many bytes. Rows of
`numbers`: OLD_SERVER or OLD_DOMAIN, a number, what it becomes; STEP, a domain, what is added to its sequence numbers;
LATER, 0, seconds that are added to times; COMMIT_BITS, 0, what commit ids are changed with. Gives also DONE, or
FALLBACK where an event fills more than a packet, a group is not as it should be or names another one that has other
numbers, or the room ends. */
KERNEL(change_packets) {
    const byte *source = a->source.at;
    ChangeOf *state = a->state.at;
    long size = a->size;
    Rows numbers = a->numbers;
    long prefix_size = state->prefix_size, filters = state->filters;
    long trailer = state->checksum_bytes, rule = state->log_pos;
    long sequence = state->sequence, kind = NO_GROUP, position = 0, after;
    *more = FALLBACK;
    for (long offset = 0; offset < size; offset = after) {
        after = packet_end(source, offset, size, prefix_size);
        const byte *event = source + offset + 4 + prefix_size;
        long payload = after - offset - 4, length = payload - prefix_size;
        if (after < 0 || payload + trailer >= PACKET_MAX)
            return 0;
        bool is_head = event[TYPE_OFFSET] == EventType_GTID, ends = false;
        if (is_head) {
            kind = group_kind(event, length);
        } else if (rule == BORDERS) {
            long role = event_role(event, length, roles_in(kind, &a->roles)[event[TYPE_OFFSET]]);
            ends = role == ENDS;
            if (role != ENDS && role != CONTINUES)
                return 0;
        }
        if (kind == NO_GROUP)
            return 0;
        state->last_position = state->position;
        state->position += length + trailer;
        if (is_left_out(event, filters))
            continue;
        if (position + 4 + payload + trailer + SPARE > a->out.size)
            return 0;
        byte *packet = a->out.at + position, *changed = packet + 4 + prefix_size;
        copy(packet, source + offset, 4 + payload);
        store32(packet, (payload + trailer) | sequence << 24);
        sequence = (sequence + 1) & 0xFF;
        if (numbers.rows > 0) {
            long server = server_of(event);
            store32(changed + SERVER_ID_OFFSET, number_for(numbers, OLD_SERVER, server, server));
            store32(changed, load32(event) + number_for(numbers, LATER, 0, 0));
            if (is_head && !renumber_head(changed, event, length, numbers))
                return 0;
        }
        if (rule != AS_STORED) {
            bool has_place = rule == EVERY || is_head || ends;
            store32(changed + LOG_POS_OFFSET, has_place ? state->position : 0);
        }
        if (trailer > 0) {
            store32(changed + SIZE_OFFSET, length + trailer);
            store32(changed + length, crc32(changed, length, 0));
        }
        position += 4 + payload + trailer;
    }
    state->sequence = sequence;
    *more = DONE;
    return position;
}
