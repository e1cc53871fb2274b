/* Kernels that frame whole groups in a block of pages, skip them, and frame parts of groups out of band.

The references, which put the same bytes on the wire: `ibbmaster.log.event_groups` and `ibbmaster.log.out_of_band`,
together with `ibbmaster.dump.framing`. */

/* Put the first bytes of the commit record in rows [row:end] together; returns how many. */
static int64_t gather_begin(Bytes pages, ShortRows table, int64_t row, int64_t end, Bytes begin) {
    int64_t position = 0;
    for (; row < end && position < begin.size; row++) {
        const int32_t *chunk = table.at + row * COLUMNS;
        if ((chunk[ChunkColumn_TYPE] & TYPE_MASK) == COMMIT) {
            int64_t taken = min64(chunk[ChunkColumn_SIZE], begin.size - position);
            memcpy(begin.at + position, pages.at + chunk[ChunkColumn_START] + CHUNK_HEADER, (size_t)taken);
            position += taken;
        }
    }
    return position;
}

/* The first event of a commit record in rows [row:end], in the pages or, if it is cut, in `begin`.

NULL if it is no GTID event, or something is out of band. */
static inline const uint8_t *find_begin(Bytes pages, ShortRows table, int64_t row, int64_t end, Bytes begin) {
    const int32_t *chunk = table.at + row * COLUMNS;
    const uint8_t *source = pages.at + chunk[ChunkColumn_START] + CHUNK_HEADER;
    int64_t size = chunk[ChunkColumn_SIZE];
    if (size < 1 + GROUP_BEGIN && end > row + 1) {
        source = begin.at;
        size = gather_begin(pages, table, row, end, begin);
    }
    return source[0] == 0 && is_group_begin(source + 1, size - 1) ? source + 1 : NULL;
}

/* Frame the group in a commit record's rows [row:end], and note it; nothing of it is left if that does not go. */
static int64_t frame_group(Bytes pages, int64_t row, int64_t end, const Framing *framing) {
    int64_t *state = framing->state.at;
    const uint8_t *first = find_begin(pages, framing->table, row, end, framing->begin);
    if (!first || is_step_back(first, framing->pairs, state))
        return Status_FALLBACK;
    int64_t position = state[Field_OUT], sequence = state[Field_SEQUENCE];
    int64_t segment_count = state[Field_SEGMENTS], segment_bytes = state[Field_SEGMENT_BYTES];
    int64_t to_skip = 1, status = Status_DONE;
    for (; row < end && status == Status_DONE; row++) {
        const int32_t *chunk = framing->table.at + row * COLUMNS;
        if ((chunk[ChunkColumn_TYPE] & TYPE_MASK) == COMMIT) {
            int64_t start = chunk[ChunkColumn_START] + CHUNK_HEADER;
            frame_bytes(pages, start + to_skip, start + chunk[ChunkColumn_SIZE], framing, &status);
            to_skip = 0;
        }
    }
    if (status == Status_DONE && (state[Field_EVENT_LEFT] || state[Field_HEAD_HELD]))
        status = Status_FALLBACK;
    if (status == Status_DONE) {
        note_group(first, framing->pairs, state);
    } else {
        state[Field_OUT] = position;
        state[Field_SEQUENCE] = sequence;
        state[Field_SEGMENTS] = segment_count;
        state[Field_SEGMENT_BYTES] = segment_bytes;
        state[Field_EVENT_LEFT] = state[Field_HEAD_HELD] = state[Field_EMPTY_TAIL] = 0;
    }
    return status;
}

/* Frame groups of one chunk each that are left as they are; returns the row of the first that is not one.

A pair is noted when another one comes, as that costs as much as an event. */
static int64_t frame_run(Bytes pages, int64_t row, int64_t count, const Framing *framing) {
    int64_t *state = framing->state.at;
    NumberRows pairs = framing->pairs;
    int64_t position = state[Field_OUT], sequence = state[Field_SEQUENCE], prefix_size = state[Field_PREFIX_SIZE];
    uint64_t prefix = (uint64_t)load32(framing->prefix.at) & ((1u << (8 * prefix_size)) - 1);
    int64_t room = framing->out.size - state[Field_SEGMENT_BYTES] - 32;
    const uint8_t *noted_last = NULL; /* the group that is to be noted; none yet */
    for (; row < count; row++) {
        const int32_t *chunk = framing->table.at + row * COLUMNS;
        if (chunk[ChunkColumn_TYPE] != (COMMIT | LAST)) {
            if (is_begin(framing->table, row, COMMIT))
                break;
            continue;
        }
        int64_t start = chunk[ChunkColumn_START] + CHUNK_HEADER + 1, end = start - 1 + chunk[ChunkColumn_SIZE];
        const uint8_t *event = pages.at + start;
        if (event[-1] != 0 || !is_group_begin(event, end - start) || state[Field_PAIRS] >= pairs.rows - 1)
            break;
        if (noted_last) {
            if (!is_same_pair(event, noted_last)) {
                note_group(noted_last, pairs, state);
                noted_last = NULL;
            } else if (sequence_of(event) <= sequence_of(noted_last)) {
                break;
            }
        }
        if (!noted_last && is_step_back(event, pairs, state))
            break;
        int64_t behind =
            frame_plain(pages, start, end, framing->out.at, room, position, &sequence, prefix, prefix_size);
        if (behind < 0)
            break;
        noted_last = event;
        position = behind;
        state[Field_GROUPS]++;
    }
    if (noted_last)
        note_group(noted_last, pairs, state);
    state[Field_OUT] = position;
    state[Field_SEQUENCE] = sequence;
    return row;
}

/* Where in the pages the out-of-band records before a row begin, with no group between; -1 for none. */
static int64_t last_run(ShortRows table, int64_t row) {
    int64_t found = -1;
    while (row-- > 0) {
        const int32_t *chunk = table.at + row * COLUMNS;
        if ((chunk[ChunkColumn_TYPE] & TYPE_MASK) == COMMIT)
            break;
        if (is_begin(table, row, OOB_DATA))
            found = chunk[ChunkColumn_START];
    }
    return found;
}

/* Index one page more behind `rows`; false at the end of the block, and where a page before said why it stopped. */
static inline bool index_page(Bytes pages, int64_t count, int64_t *state, ShortRows table, int64_t *rows,
                              int64_t *status) {
    if (*status != Status_NEED_MORE || state[Field_PAGE] >= count)
        return false;
    *rows = index_chunks(pages, state[Field_PAGE] + 1, state, table, *rows, status);
    return true;
}

/* Have the place be that of the record in a row, if that is one of those that were indexed. */
static inline void stop_at_row(ShortRows table, int64_t row, int64_t rows, int64_t *state) {
    if (row < rows)
        stop_at(table.at[row * COLUMNS + ChunkColumn_START], state);
}

/* Frame whole event groups of a block of `count` pages, each if all of it is here; skip other records.

Begins and ends where a record ends, or inside one that is skipped (`SKIP_TYPE`). `PAIRS` continues from what it was;
`RUN` is noted. Groups with a part out of band, and everything that is not as it should be, are for the reference path:
FALLBACK. */
static int64_t frame_table(Bytes pages, int64_t count, const Framing *framing) {
    int64_t *state = framing->state.at;
    ShortRows table = framing->table;
    state[Field_GROUPS] = state[Field_SEGMENTS] = state[Field_SEGMENT_BYTES] = 0;
    bool is_plain = state[Field_FILTERS] == 0, is_cut = false; /* the current record continues after the rows */
    int64_t row = 0, rows = 0, status = Status_NEED_MORE;
    for (;;) {
        if (row == rows || is_cut) {
            if (!index_page(pages, count, state, table, &rows, &status))
                break;
            is_cut = false;
            continue;
        }
        if (is_plain) {
            row = frame_run(pages, row, rows, framing);
            if (row == rows)
                continue;
        }
        if (!is_begin(table, row, COMMIT)) {
            row++;
            continue;
        }
        int64_t end = record_end(table, row, rows);
        if (end < 0) {
            is_cut = true;
            continue;
        }
        if (state[Field_PAIRS] + 1 >= framing->pairs.rows) {
            status = Status_FULL;
            break;
        }
        int64_t framed = frame_group(pages, row, end, framing);
        if (framed != Status_DONE) {
            status = framed == Status_FULL && state[Field_GROUPS] > 0 ? Status_FULL : Status_FALLBACK;
            break;
        }
        state[Field_GROUPS]++;
        row = end;
    }
    state[Field_RUN] = row == rows && state[Field_SKIP_TYPE] == OOB_DATA ? last_run(table, rows) : -1;
    stop_at_row(table, row, rows, state);
    return status;
}

/* Skip groups of a block of pages up to the one in its domain's row of `skips`; DONE after that.

See `is_skipped`. Continues after the first chunks of a group whose rest is not here. FALLBACK before a group that is
not to be skipped, or is not as it should be. */
static int64_t skip_table(Bytes pages, int64_t count, const Framing *framing, NumberRows skips) {
    int64_t *state = framing->state.at;
    ShortRows table = framing->table;
    state[Field_GROUPS] = 0;
    int64_t row = 0, rows = 0, status = Status_NEED_MORE;
    bool is_cut = false; /* the current record continues after the rows */
    for (;;) {
        if (row == rows || is_cut) {
            if (!index_page(pages, count, state, table, &rows, &status))
                break;
            is_cut = false;
            continue;
        }
        if (!is_begin(table, row, COMMIT)) {
            row++;
            continue;
        }
        int64_t end = record_end(table, row, rows);
        if (end < 0 && table.at[row * COLUMNS + ChunkColumn_SIZE] <= GROUP_BEGIN) {
            is_cut = true;
            continue;
        }
        bool is_whole = end >= 0;
        end = is_whole ? end : rows;
        const uint8_t *first = find_begin(pages, table, row, end, framing->begin);
        bool is_last = first && is_whole && is_limit(first, skips);
        bool goes_on = is_last || (first && is_skipped(first, skips));
        if (!goes_on || note_group(first, framing->pairs, state) < 0) {
            status = Status_FALLBACK;
            break;
        }
        state[Field_GROUPS]++;
        row = end;
        if (is_last) {
            status = Status_DONE;
            break;
        }
    }
    stop_at_row(table, row, rows, state);
    return status;
}

/* Frame the events in a chunk of an out-of-band record without the first `TO_SKIP` bytes; DONE if all went.

Else the place is that chunk, and what was framed of it is to be skipped next time. */
static int64_t frame_node_chunk(Bytes pages, const int32_t *chunk, const Framing *framing) {
    int64_t *state = framing->state.at, status;
    int64_t start = chunk[ChunkColumn_START] + CHUNK_HEADER, end = start + chunk[ChunkColumn_SIZE];
    int64_t first = min64(start + state[Field_TO_SKIP], end);
    state[Field_TO_SKIP] -= first - start;
    int64_t stopped = frame_bytes(pages, first, end, framing, &status);
    if (status != Status_DONE) {
        stop_at(chunk[ChunkColumn_START], state);
        if (chunk[ChunkColumn_TYPE] & CONT)
            state[Field_SKIP_TYPE] = OOB_DATA;
        state[Field_TO_SKIP] += stopped - start;
    }
    return status;
}

/* Frame the events in the out-of-band record whose begin, or other chunk, is the place.

Without the first `TO_SKIP` bytes. DONE after the record; NEED_MORE at the end of the block; FULL where the output ends;
FALLBACK where the pages or events are not as they should be. Output and `SEGMENTS` continue from what they were. */
static int64_t frame_node(Bytes pages, int64_t count, const Framing *framing) {
    int64_t *state = framing->state.at;
    bool is_begun = state[Field_SKIP_TYPE] == OOB_DATA;
    int64_t status = Status_NEED_MORE;
    while (state[Field_PAGE] < count && status == Status_NEED_MORE) {
        int64_t rows = index_chunks(pages, state[Field_PAGE] + 1, state, framing->table, 0, &status);
        for (int64_t row = 0; row < rows; row++) {
            const int32_t *chunk = framing->table.at + row * COLUMNS;
            if ((chunk[ChunkColumn_TYPE] & TYPE_MASK) != OOB_DATA) {
                if (is_begun)
                    continue; /* a state or dummy record inside */
                stop_at(chunk[ChunkColumn_START], state);
                return Status_FALLBACK;
            }
            is_begun = true;
            int64_t framed = frame_node_chunk(pages, chunk, framing);
            if (framed != Status_DONE || chunk[ChunkColumn_TYPE] & LAST)
                return framed;
        }
    }
    return status == Status_NO_DATA ? Status_FALLBACK : status;
}

/* Frame the events in the out-of-band nodes on the way to a commit record, and check all of that way.

`base` is the file offset of the pages. What lies there besides is skipped, as `frame_table` does. DONE before the
commit record at `COMMIT`, if that is where one record ends and the next begins, and no other came before; NEED_MORE at
the end of the block; FULL where the output or the nodes at hand end; else as `frame_node`. */
static int64_t frame_way(Bytes pages, int64_t count, int64_t base, NumberRows nodes, const Framing *framing,
                         int64_t *progress) {
    int64_t *state = framing->state.at, status = Status_NEED_MORE;
    state[Field_VERIFIED] = 0;
    state[Field_END] = progress[Progress_COMMIT] - base;
    while (state[Field_PAGE] < count && status == Status_NEED_MORE) {
        int64_t rows = index_chunks(pages, state[Field_PAGE] + 1, state, framing->table, 0, &status);
        for (int64_t row = 0; row < rows; row++) {
            const int32_t *chunk = framing->table.at + row * COLUMNS;
            int64_t type_byte = chunk[ChunkColumn_TYPE], begin = chunk[ChunkColumn_START];
            if ((type_byte & TYPE_MASK) == COMMIT) {
                stop_at(begin, state);
                return Status_FALLBACK;
            }
            if ((type_byte & TYPE_MASK) != OOB_DATA)
                continue;
            if (!(type_byte & CONT) && !progress[Progress_IS_BEGUN]) {
                if (progress[Progress_NODE] == nodes.rows) {
                    if (progress[Progress_HAS_MORE]) {
                        stop_at(begin, state);
                        return Status_FULL;
                    }
                    continue; /* of another group */
                }
                const int64_t *node = nodes.at + progress[Progress_NODE] * NodeColumn_COLUMNS;
                if (node[NodeColumn_PLACE] < base + begin) {
                    stop_at(begin, state);
                    return Status_FALLBACK;
                }
                if (node[NodeColumn_PLACE] == base + begin) {
                    progress[Progress_IS_BEGUN] = 1;
                    state[Field_TO_SKIP] = node[NodeColumn_HEADER_SIZE];
                }
            }
            if (!progress[Progress_IS_BEGUN])
                continue;
            int64_t framed = frame_node_chunk(pages, chunk, framing);
            if (framed != Status_DONE)
                return framed;
            if (type_byte & LAST) {
                progress[Progress_IS_BEGUN] = 0;
                progress[Progress_NODE]++;
            }
        }
    }
    if (status != Status_NO_DATA)
        return status;
    bool is_there = base + state[Field_PAGE] * PAGE + state[Field_OFFSET] == progress[Progress_COMMIT];
    bool is_between = state[Field_SKIP_TYPE] < 0 && state[Field_NESTED_TYPE] < 0;
    return is_there && is_between ? Status_DONE : Status_FALLBACK;
}

KERNEL(frame_table) { return frame_table(a->pages, a->count, &a->framing); }
KERNEL(skip_table) { return skip_table(a->pages, a->count, &a->framing, a->skips); }
KERNEL(frame_node) { return frame_node(a->pages, a->count, &a->framing); }
