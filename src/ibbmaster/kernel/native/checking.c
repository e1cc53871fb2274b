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
static inline void note_found(int64_t *found, int64_t place, int64_t size, int64_t first_size, int64_t record_type) {
    found[Found_PAGE] = place / PAGE;
    found[Found_OFFSET] = place % PAGE;
    found[Found_SIZE] = size;
    found[Found_FIRST_SIZE] = first_size;
    found[Found_TYPE] = record_type;
}

/* Divide the bytes that come next of a stream into events: EVENT_LEFT and HEAD_HELD go on.

A header that is cut is held in `head`.

False if an event cannot have its size, or is a fragment of a row event, which the reference looks into. */
static bool split_events(const uint8_t *at, int64_t size, int64_t *state, uint8_t *head) {
    const uint8_t *end = at + size;
    while (at < end) {
        int64_t left = state[Field_EVENT_LEFT], held = state[Field_HEAD_HELD];
        if (left > 0) {
            int64_t passed = min64(left, end - at);
            state[Field_EVENT_LEFT] = left - passed;
            at += passed;
            continue;
        }
        const uint8_t *event = head;
        if (held == 0 && end - at >= EVENT_HEADER) {
            event = at;
            at += EVENT_HEADER;
        } else {
            at += hold_head(at, end - at, state, head);
            if (state[Field_HEAD_HELD] < EVENT_HEADER)
                break;
            state[Field_HEAD_HELD] = 0;
        }
        if (size_of(event) < EVENT_HEADER || event[TYPE_OFFSET] == PARTIAL_ROW_DATA)
            return false;
        state[Field_EVENT_LEFT] = size_of(event) - EVENT_HEADER;
    }
    return true;
}

/* Note the group that begins with a GTID event, and whose commit record begins at a place of the pages.

False if its number is not above the last of its pair, or there is no room for its pair. */
static inline bool note_commit(const uint8_t *event, NumberRows pairs, int64_t *state, int64_t place) {
    int64_t known = state[Field_PAIRS];
    if (is_step_back(event, pairs, state))
        return false;
    int64_t pair = note_group(event, pairs, state);
    if (pair < 0)
        return false;
    int64_t page = place / PAGE, offset = place % PAGE;
    int64_t *noted = pairs.at + pair * PairColumn_COLUMNS;
    if (pair == known) {
        noted[PairColumn_FIRST] = noted[PairColumn_LAST];
        noted[PairColumn_FIRST_PAGE] = page;
        noted[PairColumn_FIRST_OFFSET] = offset;
    }
    noted[PairColumn_LAST_PAGE] = page;
    noted[PairColumn_LAST_OFFSET] = offset;
    return true;
}

/* Note the group of a commit record that is one chunk.

False if it has a part out of band, is not whole events, has fragments of row events, or as of `note_commit`. */
static bool check_commit(const uint8_t *pages, int64_t start, int64_t size, NumberRows pairs, int64_t *state,
                         int64_t place) {
    if (pages[start] != 0 || !is_group(pages, start + 1, start + size, PARTIAL_ROW_DATA))
        return false;
    return note_commit(pages + start + 1, pairs, state, place);
}

/* Take a chunk of a commit record that has several, after `held` bytes of the record; false as of `split_events`.

The scratch keeps how the record begins, and behind that an event header that is cut. */
static bool take_commit(const uint8_t *data, int64_t size, int64_t held, int64_t *state, uint8_t *scratch) {
    if (held < COMMIT_BEGIN)
        memcpy(scratch + held, data, (size_t)min64(size, COMMIT_BEGIN - held));
    int64_t skipped = 0;
    if (held == 0) {
        state[Field_EVENT_LEFT] = state[Field_HEAD_HELD] = 0;
        skipped = 1;
    }
    return split_events(data + skipped, size - skipped, state, scratch + COMMIT_BEGIN);
}

/* Note the group of a commit record that `take_commit` has taken; false as of `check_commit`. */
static bool end_commit(int64_t size, NumberRows pairs, int64_t *state, const uint8_t *scratch, int64_t place) {
    bool is_whole = state[Field_EVENT_LEFT] == 0 && state[Field_HEAD_HELD] == 0;
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
    int64_t *state = checking->state.at;
    uint8_t *scratch = checking->scratch.at;
    NumberRows pairs = checking->pairs, found = checking->found;
    int64_t place = state[Field_PAGE] * PAGE + state[Field_OFFSET]; /* all before is right */
    int64_t chunk_end = place;                                      /* of the last chunk */
    int64_t due = state[Field_DUE] >= 0 ? state[Field_DUE] * PAGE : pages.size;
    int64_t rows_found = 0, kept = 0;                  /* the latter of what is right to its end */
    int64_t held = 0, first_size = 0, second_size = 0; /* bytes of the current record, of chunks its head may be in */
    Chunks chunks = {0, 0, Status_NEED_MORE};
    bool is_good = true, has_state = false;
    while (is_good && !(has_state && place == chunk_end)) {
        const int32_t *chunk = next_chunk(pages, a->count, state, checking->table, &chunks);
        if (!chunk)
            break;
        int64_t start = chunk[ChunkColumn_START], size = chunk[ChunkColumn_SIZE], type_byte = chunk[ChunkColumn_TYPE];
        int64_t record_type = type_byte & TYPE_MASK;
        is_good = is_filled(pages.at, chunk_end, start);
        if (record_type == GTID_STATE) {
            is_good = is_good && start == due && !has_state && (type_byte & (CONT | LAST)) == LAST;
            is_good = is_good && rows_found < found.rows;
            if (is_good) {
                note_found(found.at + rows_found * Found_COLUMNS, start, size, size, GTID_STATE);
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
                note_found(found.at + rows_found * Found_COLUMNS, place, held, first_size, OOB_DATA);
                rows_found++;
            }
        } else {
            if (type_byte & CONT)
                is_good = is_good && end_commit(held, pairs, state, scratch, place);
            else
                is_good = check_commit(pages.at, start + CHUNK_HEADER, size, pairs, state, place);
            state[Field_GROUPS] += is_good;
        }
        if (is_good) {
            place = chunk_end;
            kept = rows_found;
        }
    }
    bool is_cut = is_good && place != chunk_end && chunks.status == Status_NEED_MORE;
    int64_t last = state[Field_PAGE] * PAGE + state[Field_OFFSET];
    if (is_good && chunks.row == chunks.rows && place == chunk_end && is_filled(pages.at, chunk_end, last))
        place = last;
    state[Field_PAGE] = place / PAGE;
    state[Field_OFFSET] = place % PAGE;
    *more = is_cut ? Status_NEED_MORE : Status_FALLBACK;
    return kept;
}
