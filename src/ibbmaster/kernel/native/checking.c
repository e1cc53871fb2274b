/* A kernel that checks pages whose records are all as they should be, and stops where one is not.

The reference, which says what is wrong: `ibbmaster.logs.log.verify`. */

/* bytes of a commit record that identify its group, if none of it is out of band */
#define COMMIT_BEGIN (1 + GROUP_BEGIN)

/* Whether a chunk may begin at `start` if the one before ends at `chunk_end`: at once, or on the next page. */
static inline bool is_filled(const uint8_t *pages, int64_t chunk_end, int64_t start) {
    bool is_good = start == chunk_end;
    int64_t end = chunk_end / PAGE * PAGE + DATA;
    if (start == end + PAGE - DATA && end - chunk_end <= CHUNK_HEADER) {
        is_good = true;
        for (int64_t offset = chunk_end; offset < end; offset++)
            is_good = is_good && pages[offset] == FILLER;
    }
    return is_good;
}

/* Note a record that was not looked into. */
static inline void note_found(Found *found, int64_t place, int64_t size, int64_t first_size, int64_t record_type) {
    found->page = place / PAGE;
    found->offset = place % PAGE;
    found->size = size;
    found->first_size = first_size;
    found->type = record_type;
}

/* Divide the bytes that come next of a stream into events: EVENT_LEFT and HEAD_HELD go on.

A header that is cut is held in `head`.

False if an event cannot have its size, or is a fragment of a row event, which the reference looks into. */
static bool split_events(const uint8_t *at, int64_t size, Field *state, uint8_t *head) {
    const uint8_t *end = at + size;
    while (at < end) {
        int64_t left = state->event_left, held = state->head_held;
        if (left > 0) {
            int64_t passed = min64(left, end - at);
            state->event_left = left - passed;
            at += passed;
            continue;
        }
        const uint8_t *event = head;
        if (held == 0 && end - at >= EVENT_HEADER) {
            event = at;
            at += EVENT_HEADER;
        } else {
            at += hold_head(at, end - at, state, head);
            if (state->head_held < EVENT_HEADER)
                break;
            state->head_held = 0;
        }
        if (size_of(event) < EVENT_HEADER || event[TYPE_OFFSET] == PARTIAL_ROW_DATA)
            return false;
        state->event_left = size_of(event) - EVENT_HEADER;
    }
    return true;
}

/* Note the group that begins with a GTID event, and whose commit record begins at a place of the pages.

False if its number is not above the last of its pair, or there is no room for its pair. */
static inline bool note_commit(const uint8_t *event, NumberRows pairs, Field *state, int64_t place) {
    int64_t known = state->pairs;
    if (is_step_back(event, pairs, state))
        return false;
    int64_t pair = note_group(event, pairs, state);
    if (pair < 0)
        return false;
    int64_t page = place / PAGE, offset = place % PAGE;
    PairRow *noted = ROW(PairRow, pairs, pair);
    if (pair == known) {
        noted->first = noted->last;
        noted->first_page = page;
        noted->first_offset = offset;
    }
    noted->last_page = page;
    noted->last_offset = offset;
    return true;
}

/* Note the group of a commit record that is one chunk.

False if it has a part out of band, is not whole events, has fragments of row events, or as of `note_commit`. */
static bool check_commit(const uint8_t *pages, int64_t start, int64_t size, NumberRows pairs, Field *state,
                         int64_t place) {
    if (pages[start] != 0 || !is_group(pages, start + 1, start + size, PARTIAL_ROW_DATA))
        return false;
    return note_commit(pages + start + 1, pairs, state, place);
}

/* Take a chunk of a commit record that has several, after `held` bytes of the record; false as of `split_events`.

The scratch keeps how the record begins, and behind that an event header that is cut. */
static bool take_commit(const uint8_t *data, int64_t size, int64_t held, Field *state, uint8_t *scratch) {
    if (held < COMMIT_BEGIN)
        memcpy(scratch + held, data, (size_t)min64(size, COMMIT_BEGIN - held));
    int64_t skipped = 0;
    if (held == 0) {
        state->event_left = state->head_held = 0;
        skipped = 1;
    }
    return split_events(data + skipped, size - skipped, state, scratch + COMMIT_BEGIN);
}

/* Note the group of a commit record that `take_commit` has taken; false as of `check_commit`. */
static bool end_commit(int64_t size, NumberRows pairs, Field *state, const uint8_t *scratch, int64_t place) {
    bool is_whole = state->event_left == 0 && state->head_held == 0;
    if (!is_whole || scratch[0] != 0 || !is_group_begin(scratch + 1, min64(size, COMMIT_BEGIN) - 1))
        return false;
    return note_commit(scratch + 1, pairs, state, place);
}

/* Divide the data of an out-of-band record, which `check_table` has found whole, as `split_events`. */
KERNEL(split_node) {
    const uint8_t *pages = a->pages.at;
    int64_t left = a->header_size, page = a->place / PAGE, offset = a->place % PAGE;
    while (true) {
        int64_t start = page * PAGE + offset, chunk = load32(pages + start);
        int64_t type_byte = chunk & 0xFF, size = chunk >> 8 & 0xFFFF;
        if (offset > DATA - CHUNK_HEADER - 1 || type_byte == FILLER) {
            page++;
            offset = 0;
            continue;
        }
        if ((type_byte & TYPE_MASK) == OOB_DATA) {
            int64_t passed = min64(left, size);
            left -= passed;
            if (!split_events(pages + start + CHUNK_HEADER + passed, size - passed, a->state.at, a->head.at))
                return false;
            if (type_byte & LAST)
                return true;
        }
        offset += CHUNK_HEADER + size;
    }
}

/* Check whole inline groups and out-of-band records of `count` pages from a place between records on.

Stops, with the place in `state`, before the first record that is another, not whole here, or not right, and before a
group whose number is not above the one before of its pair. Of the state record that is due at DUE the place is noted,
and after it, or after the record that it stands in, it stops, too. GROUPS and PAIRS continue counting. Gives how many
nodes and states were found, what is in them was not looked at; and NEED_MORE where that record continues after the
block. */
KERNEL(check_table) {
    Bytes pages = a->pages;
    const Checking *checking = &a->checking;
    Field *state = checking->state.at;
    uint8_t *scratch = checking->scratch.at;
    NumberRows pairs = checking->pairs, found = checking->found;
    int64_t place = state->page * PAGE + state->offset; /* all before is right */
    int64_t chunk_end = place;                                      /* of the last chunk */
    int64_t due = state->due >= 0 ? state->due * PAGE : pages.size;
    int64_t rows_found = 0, kept = 0;                  /* the latter of what is right to its end */
    int64_t held = 0, first_size = 0, second_size = 0; /* bytes of the current record, of chunks its head may be in */
    Chunks chunks = {0, 0, Status_NEED_MORE};
    bool is_good = true, has_state = false;
    while (is_good && !(has_state && place == chunk_end)) {
        const ChunkRow *chunk = next_chunk(pages, a->count, state, checking->table, &chunks);
        if (!chunk)
            break;
        int64_t start = chunk->start, size = chunk->size, type_byte = chunk->type;
        int64_t record_type = type_byte & TYPE_MASK;
        is_good = is_filled(pages.at, chunk_end, start);
        if (record_type == GTID_STATE) {
            is_good = is_good && start == due && !has_state && (type_byte & (CONT | LAST)) == LAST;
            is_good = is_good && rows_found < found.rows;
            if (is_good) {
                note_found(ROW(Found, found, rows_found), start, size, size, GTID_STATE);
                rows_found++;
                has_state = true;
                if (place == chunk_end) {
                    place = start + CHUNK_HEADER + size;
                    kept = rows_found;
                }
                chunk_end = start + CHUNK_HEADER + size;
            }
            continue;
        }
        is_good = is_good && (start < due || has_state);
        if (is_good && place == chunk_end) { /* between records */
            place = start;
            held = second_size = 0;
            first_size = size;
        } else if (held == first_size && start == (place / PAGE + 1) * PAGE) {
            second_size = size;
        }
        is_good = is_good && (record_type == COMMIT || record_type == OOB_DATA);
        if (!is_good)
            break;
        chunk_end = start + CHUNK_HEADER + size;
        if (record_type == COMMIT && (type_byte & (CONT | LAST)) != LAST)
            is_good = take_commit(pages.at + start + CHUNK_HEADER, size, held, state, scratch);
        held += size;
        if (!(type_byte & LAST))
            continue;
        if (record_type == OOB_DATA) {
            int64_t head_size = first_size >= NODE_HEAD_MIN ? first_size : first_size + second_size;
            is_good = rows_found < found.rows && (head_size >= NODE_HEAD_MIN || head_size == held);
            if (is_good) {
                note_found(ROW(Found, found, rows_found), place, held, first_size, OOB_DATA);
                rows_found++;
            }
        } else {
            if (type_byte & CONT)
                is_good = is_good && end_commit(held, pairs, state, scratch, place);
            else
                is_good = check_commit(pages.at, start + CHUNK_HEADER, size, pairs, state, place);
            state->groups += is_good;
        }
        if (is_good) {
            place = chunk_end;
            kept = rows_found;
        }
    }
    bool is_cut = is_good && place != chunk_end && chunks.status == Status_NEED_MORE;
    int64_t last = state->page * PAGE + state->offset;
    if (is_good && chunks.row == chunks.rows && place == chunk_end && is_filled(pages.at, chunk_end, last))
        place = last;
    state->page = place / PAGE;
    state->offset = place % PAGE;
    *more = is_cut ? Status_NEED_MORE : Status_FALLBACK;
    return kept;
}
