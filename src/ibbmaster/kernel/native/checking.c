/* Kernels that check pages, and stop at what is wrong. The reference, which says it: `ibbmaster.logs.log.verify`. */

#define COMMIT_BEGIN (1 + GROUP_BEGIN) /* bytes of a commit record that identify its group, if it is inline */

/* Whether a chunk may begin at `start` if the one before ends at `chunk_end`: at once, or on the next page. */
static inline bool is_filled(const byte *pages, long chunk_end, long start) {
    long end = chunk_end / PAGE * PAGE + DATA;
    if (start != end + PAGE - DATA || end - chunk_end > CHUNK_HEADER)
        return start == chunk_end;
    while (chunk_end < end && pages[chunk_end] == FILLER)
        chunk_end++;
    return chunk_end >= end;
}

/* Divide the next bytes of a stream into events: EVENT_LEFT and HEAD_HELD go on, `head` holds a cut header. False if an
event cannot have its size, or is a fragment of a row event, which is for the reference. */
static bool split_events(const byte *at, long size, Field *state, byte *head) {
    const byte *end = at + size;
    while (at < end) {
        long passed = min64(state->event_left, end - at);
        if (passed > 0) {
            state->event_left -= passed;
            at += passed;
            continue;
        }
        const byte *event = head;
        if (state->head_held == 0 && end - at >= EVENT_HEADER) {
            event = at;
            at += EVENT_HEADER;
        } else {
            at += hold_head(at, end - at, state, head);
            if (state->head_held < EVENT_HEADER)
                break;
            state->head_held = 0;
        }
        if (size_of(event) < EVENT_HEADER || event[TYPE_OFFSET] == EventType_PARTIAL_ROW_DATA)
            return false;
        state->event_left = size_of(event) - EVENT_HEADER;
    }
    return true;
}

/* Note the group of a commit record at a place of the pages. False if its number is not above the last of its pair, or
there is no room for its pair. */
static inline bool note_commit(const byte *event, Rows pairs, Field *state, long place) {
    long known = state->pairs;
    if (is_step_back(event, pairs, state))
        return false;
    long pair = note_group(event, pairs, state);
    if (pair < 0)
        return false;
    PairRow *noted = ROW(PairRow, pairs, pair);
    if (pair == known) {
        noted->first = noted->last;
        noted->first_place = place;
    }
    noted->last_place = place;
    return true;
}

/* Take a chunk of a commit record that has several, after `held` bytes; false as of `split_events`. The scratch keeps
how the record begins, and behind that a cut event header. */
static bool take_commit(const byte *data, long size, long held, Field *state, byte *scratch) {
    if (held < COMMIT_BEGIN)
        copy(scratch + held, data, min64(size, COMMIT_BEGIN - held));
    if (held == 0)
        state->event_left = state->head_held = 0;
    long skipped = held == 0;
    return split_events(data + skipped, size - skipped, state, scratch + COMMIT_BEGIN);
}

/* Whether a commit record that `take_commit` has taken is a group without a part out of band. */
static bool is_whole_commit(long size, const Field *state, const byte *scratch) {
    bool is_whole = state->event_left == 0 && state->head_held == 0;
    return is_whole && scratch[0] == 0 && is_group_begin(scratch + 1, min64(size, COMMIT_BEGIN) - 1);
}

/* Divide the data of a whole out-of-band record, as `split_events`. */
KERNEL(split_node) {
    const byte *pages = a->pages.at;
    long left = a->header_size, page = a->place / PAGE, offset = a->place % PAGE;
    while (true) {
        long start = page * PAGE + offset, chunk = load32(pages + start);
        long type_byte = chunk & 0xFF, size = chunk >> 8 & 0xFFFF;
        if (offset > DATA - CHUNK_HEADER - 1 || type_byte == FILLER) {
            page++;
            offset = 0;
            continue;
        }
        if ((type_byte & TYPE_MASK) == OOB_DATA) {
            long passed = min64(left, size);
            left -= passed;
            if (!split_events(pages + start + CHUNK_HEADER + passed, size - passed, a->state.at, a->head.at))
                return false;
            if (type_byte & LAST)
                return true;
        }
        offset += CHUNK_HEADER + size;
    }
}

/* Check whole inline groups and out-of-band records of `count` pages from a place between records on. Stops, with the
place in `state`, before the first record that is another, not whole here, or not right, and before a group whose number
is not above the one before of its pair. It notes the state record due at DUE, and stops after it, or after the record
around it. GROUPS and PAIRS continue. Gives how many nodes and states were found, whose content was not looked at; and
NEED_MORE where that record continues after the block. */
KERNEL(check_table) {
    Bytes pages = a->pages;
    const Checking *checking = &a->checking;
    Field *state = checking->state.at;
    byte *scratch = checking->scratch.at;
    Rows pairs = checking->pairs, found = checking->found;
    long place = state->page * PAGE + state->offset, chunk_end = place; /* all before is right; of the last chunk */
    long due = state->due >= 0 ? state->due * PAGE : pages.size;
    long rows_found = 0, kept = 0; /* the latter of what is right to its end */
    long held = 0, first_size = 0, second_size = 0; /* bytes of the current record, of chunks its head may be in */
    Chunks chunks = chunks_of(pages, a->count, state, checking->table);
    bool is_good = true, has_state = false;
    while (is_good && !(has_state && place == chunk_end)) {
        const ChunkRow *chunk = next_chunk(&chunks);
        if (!chunk)
            break;
        long start = chunk->start, size = chunk->size, type_byte = chunk->type;
        long record_type = type_byte & TYPE_MASK;
        is_good = is_filled(pages.at, chunk_end, start);
        if (record_type == GTID_STATE) {
            is_good = is_good && start == due && !has_state && (type_byte & (CONT | LAST)) == LAST;
            is_good = is_good && rows_found < found.rows;
            if (is_good) {
                *ROW(Found, found, rows_found++) = (Found){start / PAGE, start % PAGE, size, size, GTID_STATE};
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
            long head_size = first_size >= NODE_HEAD_MIN ? first_size : first_size + second_size;
            is_good = rows_found < found.rows && (head_size >= NODE_HEAD_MIN || head_size == held);
            if (is_good)
                *ROW(Found, found, rows_found++) = (Found){place / PAGE, place % PAGE, held, first_size, OOB_DATA};
        } else {
            const byte *record = type_byte & CONT ? scratch : pages.at + start + CHUNK_HEADER;
            if (type_byte & CONT)
                is_good = is_good && is_whole_commit(held, state, scratch);
            else
                is_good = record[0] == 0 && is_group(record, 1, size, EventType_PARTIAL_ROW_DATA);
            is_good = is_good && note_commit(record + 1, pairs, state, place);
            state->groups += is_good;
        }
        if (is_good) {
            place = chunk_end;
            kept = rows_found;
        }
    }
    bool is_cut = is_good && place != chunk_end && chunks.status == NEED_MORE;
    long last = state->page * PAGE + state->offset;
    if (is_good && chunks.row == chunks.rows && place == chunk_end && is_filled(pages.at, chunk_end, last))
        place = last;
    state->page = place / PAGE;
    state->offset = place % PAGE;
    *more = is_cut ? NEED_MORE : FALLBACK;
    return kept;
}
