/* The GTID event that a group begins with. The reference: `ibbmaster.logs.log.event_groups`. */

#define NO_EVENT -1

static inline long domain_of(const byte *event) { return load32(event + DOMAIN_ID_OFFSET); }
static inline long server_of(const byte *event) { return load32(event + SERVER_ID_OFFSET); }
static inline uint64_t sequence_of(const byte *event) { return load64(event + SEQ_NO_OFFSET); }
static inline long size_of(const byte *event) { return load32(event + SIZE_OFFSET); } /* as the event says */

static inline bool is_group_begin(const byte *event, long size) {
    return size >= GROUP_BEGIN && event[TYPE_OFFSET] == EventType_GTID && size_of(event) >= GTID_EVENT_SIZE_MIN;
}

/* Whether the bytes are a GTID event and others to their end, none of the type `stopper`. */
static bool is_group(const byte *source, long start, long end, long stopper) {
    if (!is_group_begin(source + start, end - start))
        return false;
    while (end - start >= EVENT_HEADER) {
        long size = size_of(source + start);
        if (size < EVENT_HEADER || size > end - start || source[start + TYPE_OFFSET] == stopper)
            return false;
        start += size;
    }
    return start == end;
}

/* The group at which the skipping of its domain ends. */
typedef struct { long domain, server, sequence; } Skip;

/* Where a group is to the one at which its domain's skipping ends: before it, that one, or in no such domain or behind
it. */
static long skip_order(const byte *event, Rows skips) {
    const Skip *skip = skips.at;
    for (long row = 0; row < skips.rows; row++, skip++)
        if (skip->domain == domain_of(event) && skip->server == server_of(event))
            return sequence_of(event) < (uint64_t)skip->sequence ? -1 : sequence_of(event) > (uint64_t)skip->sequence;
        else if (skip->domain == domain_of(event))
            return -1;
    return 1;
}

/* The row of a group's pair; `count` if the first `count` ones lack it. */
static inline long find_pair(const byte *event, Rows pairs, long count) {
    long server_id = server_of(event), domain_id = domain_of(event), number = 0;
    const PairRow *pair = pairs.at;
    for (; number < count && (pair->domain != domain_id || pair->server != server_id); number++)
        pair++;
    return number;
}

/* Whether a group's number is not above the one noted last for its pair. */
static inline bool is_step_back(const byte *event, Rows pairs, const Field *state) {
    long pair = find_pair(event, pairs, state->pairs);
    return pair < state->pairs && sequence_of(event) <= (uint64_t)ROW(PairRow, pairs, pair)->last;
}

/* Note the GTID of a group, and its turn; returns the row of its pair, -1 for no room. */
static inline long note_group(const byte *event, Rows pairs, Field *state) {
    long pair = find_pair(event, pairs, state->pairs);
    if (pair == pairs.rows)
        return -1;
    PairRow *row = ROW(PairRow, pairs, pair);
    if (pair == state->pairs)
        state->pairs++;
    else if (sequence_of(event) <= (uint64_t)row->last)
        state->steps_back++;
    state->noted++;
    row->domain = domain_of(event);
    row->server = server_of(event);
    row->last = (long)sequence_of(event);
    row->turn = state->noted;
    return pair;
}
