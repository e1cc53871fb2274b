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
    for (int64_t row = 0; row < skips.rows; row++)
        if (skips.at[row * skips.columns] == domain_of(event))
            return skips.at + row * skips.columns;
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
    const int64_t *known = pairs.at;
    for (; pair < count && (known[0] != domain_id || known[1] != server_id); pair++)
        known += pairs.columns;
    return pair;
}

/* Whether a group has a number that is not above the one noted last for its pair. */
static inline bool is_step_back(const uint8_t *event, NumberRows pairs, const int64_t *state) {
    int64_t pair = find_pair(event, pairs, state[Field_PAIRS]);
    return pair < state[Field_PAIRS] && sequence_of(event) <= (uint64_t)pairs.at[pair * pairs.columns + 2];
}

/* Note the GTID of a group, and its turn; returns the row of its pair, -1 for no room. */
static inline int64_t note_group(const uint8_t *event, NumberRows pairs, int64_t *state) {
    int64_t count = state[Field_PAIRS], pair = find_pair(event, pairs, count);
    if (pair == pairs.rows)
        return -1;
    int64_t *row = pairs.at + pair * pairs.columns;
    if (pair == count)
        state[Field_PAIRS] = count + 1;
    else if (sequence_of(event) <= (uint64_t)row[2])
        state[Field_STEPS_BACK]++;
    state[Field_NOTED]++;
    row[0] = domain_of(event);
    row[1] = server_of(event);
    row[2] = (int64_t)sequence_of(event);
    row[3] = state[Field_NOTED];
    return pair;
}
