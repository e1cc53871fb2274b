/* What kernels know of a group by the GTID event that it begins with. The reference: `ibbmaster.logs.log.event_groups`. */

static inline int64_t domain_of(const uint8_t *event) { return load32(event + DOMAIN_ID_OFFSET); }
static inline int64_t server_of(const uint8_t *event) { return load32(event + SERVER_ID_OFFSET); }
static inline uint64_t sequence_of(const uint8_t *event) { return load64(event + SEQ_NO_OFFSET); }
static inline int64_t size_of(const uint8_t *event) { return load32(event + SIZE_OFFSET); } /* as the event says */

/* Whether the bytes begin with a GTID event. */
static inline bool is_group_begin(const uint8_t *event, int64_t size) {
    return size >= GROUP_BEGIN && event[TYPE_OFFSET] == GTID_EVENT && size_of(event) >= GTID_EVENT_MIN;
}

/* Whether the bytes begin with a GTID event and are events to their end, none of the type `stopper`. */
static bool is_group(const uint8_t *source, int64_t start, int64_t end, int64_t stopper) {
    if (!is_group_begin(source + start, end - start))
        return false;
    while (end - start >= EVENT_HEADER) {
        int64_t size = size_of(source + start);
        if (size < EVENT_HEADER || size > end - start || source[start + TYPE_OFFSET] == stopper)
            return false;
        start += size;
    }
    return start == end;
}

/* Of the first row of `skips` for a group's domain: each is domain, server and sequence number; NULL for none. */
static inline const int64_t *skip_of(const uint8_t *event, NumberRows skips) {
    const int64_t *skip = skips.at;
    for (int64_t row = 0; row < skips.rows; row++, skip += skips.columns)
        if (skip[0] == domain_of(event))
            return skip;
    return NULL;
}

/* Whether a group comes before the one at which its domain's skipping ends, which is in `skips`. */
static bool is_skipped(const uint8_t *event, NumberRows skips) {
    const int64_t *skip = skip_of(event, skips);
    return skip && (skip[1] != server_of(event) || sequence_of(event) < (uint64_t)skip[2]);
}

/* Whether a group is the one at which its domain's skipping ends: see `is_skipped`. */
static bool is_limit(const uint8_t *event, NumberRows skips) {
    const int64_t *skip = skip_of(event, skips);
    return skip && skip[1] == server_of(event) && sequence_of(event) == (uint64_t)skip[2];
}

/* Whether two groups have the same domain and server. */
static inline bool is_same_pair(const uint8_t *one, const uint8_t *other) {
    return server_of(one) == server_of(other) && domain_of(one) == domain_of(other);
}

/* The row of a group's domain and server; `count` if they are not among the first `count` pairs. */
static inline int64_t find_pair(const uint8_t *event, NumberRows pairs, int64_t count) {
    int64_t server_id = server_of(event), domain_id = domain_of(event), pair = 0;
    const PairRow *known = pairs.at;
    for (; pair < count && (known->domain != domain_id || known->server != server_id); pair++)
        known++;
    return pair;
}

/* Whether a group has a number that is not above the one noted last for its pair. */
static inline bool is_step_back(const uint8_t *event, NumberRows pairs, const Field *state) {
    int64_t pair = find_pair(event, pairs, state->pairs);
    return pair < state->pairs && sequence_of(event) <= (uint64_t)ROW(PairRow, pairs, pair)->last;
}

/* Note the GTID of a group, and its turn; returns the row of its pair, -1 for no room. */
static inline int64_t note_group(const uint8_t *event, NumberRows pairs, Field *state) {
    int64_t count = state->pairs, pair = find_pair(event, pairs, count);
    if (pair == pairs.rows)
        return -1;
    PairRow *row = ROW(PairRow, pairs, pair);
    if (pair == count)
        state->pairs = count + 1;
    else if (sequence_of(event) <= (uint64_t)row->last)
        state->steps_back++;
    state->noted++;
    row->domain = domain_of(event);
    row->server = server_of(event);
    row->last = (int64_t)sequence_of(event);
    row->turn = state->noted;
    return pair;
}
