/* Kernels that frame whole groups in a block of pages, skip them, and frame parts of groups out of band.

The references, which put the same bytes on the wire: `ibbmaster.logs.log.event_groups` and `ibbmaster.logs.log.out_of_band`,
together with `ibbmaster.replication.dump.framing`. */

/* Put the first bytes of the commit record in rows [row:end] together; returns how many. */
static int64_t gather_begin(Bytes pages, ShortRows table, int64_t row, int64_t end, Bytes begin) {
    int64_t position = 0;
    for (; row < end && position < begin.size; row++) {
        const ChunkRow *chunk = ROW(ChunkRow, table, row);
        if ((chunk->type & TYPE_MASK) == COMMIT) {
            int64_t taken = min64(chunk->size, begin.size - position);
            memcpy(begin.at + position, pages.at + chunk->start + CHUNK_HEADER, (size_t)taken);
            position += taken;
        }
    }
    return position;
}

/* The first event of a commit record in rows [row:end], in the pages or, if it is cut, in `begin`.

NULL if it is no GTID event, or something is out of band. */
static inline const uint8_t *find_begin(Bytes pages, ShortRows table, int64_t row, int64_t end, Bytes begin) {
    const ChunkRow *chunk = ROW(ChunkRow, table, row);
    const uint8_t *source = pages.at + chunk->start + CHUNK_HEADER;
    int64_t size = chunk->size;
    if (size < 1 + GROUP_BEGIN && end > row + 1) {
        source = begin.at;
        size = gather_begin(pages, table, row, end, begin);
    }
    return source[0] == 0 && is_group_begin(source + 1, size - 1) ? source + 1 : NULL;
}

/* Frame the group in a commit record's rows [row:end], and note it; nothing of it is left if that does not go. */
static int64_t frame_group(Bytes pages, int64_t row, int64_t end, const Framing *framing) {
    Field *state = framing->state.at;
    const uint8_t *first = find_begin(pages, framing->table, row, end, framing->begin);
    if (!first || is_step_back(first, framing->pairs, state))
        return Status_FALLBACK;
    Mark before = mark_of(state);
    int64_t to_skip = 1, status = Status_DONE;
    for (; row < end && status == Status_DONE; row++) {
        const ChunkRow *chunk = ROW(ChunkRow, framing->table, row);
        if ((chunk->type & TYPE_MASK) == COMMIT) {
            int64_t start = chunk->start + CHUNK_HEADER;
            frame_bytes(pages, start + to_skip, start + chunk->size, framing, &status);
            to_skip = 0;
        }
    }
    if (status == Status_DONE && (state->event_left || state->head_held))
        status = Status_FALLBACK;
    if (status == Status_DONE) {
        note_group(first, framing->pairs, state);
    } else {
        go_back(state, before);
        state->event_left = state->head_held = state->empty_tail = 0;
    }
    return status;
}

/* Frame groups of one chunk each that are left as they are; returns the row of the first that is not one.

A pair is noted when another one comes, as that costs as much as an event. */
static int64_t frame_run(Bytes pages, int64_t row, int64_t count, const Framing *framing) {
    Field *state = framing->state.at;
    NumberRows pairs = framing->pairs;
    int64_t position = state->out, sequence = state->sequence, status = Status_DONE;
    ShortEvents whole = short_events(framing);
    whole.filters = 0; /* there are none, which the compiler does not know */
    whole.size_max = EVENT_MAX; /* a chunk has no event that is longer than a packet */
    const uint8_t *noted_last = NULL; /* the group that is to be noted; none yet */
    for (; row < count; row++) {
        const ChunkRow *chunk = ROW(ChunkRow, framing->table, row);
        if (chunk->type != (COMMIT | LAST)) {
            if (is_begin(framing->table, row, COMMIT))
                break;
            continue;
        }
        int64_t start = chunk->start + CHUNK_HEADER + 1, end = start - 1 + chunk->size;
        const uint8_t *event = pages.at + start;
        if (event[-1] != 0 || !is_group_begin(event, end - start) || state->pairs >= pairs.rows - 1)
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
        int64_t after = position, number = sequence;
        if (frame_short(pages, start, end, whole, framing->out, &after, &number, &status) != end)
            break;
        noted_last = event;
        position = after;
        sequence = number;
        state->groups++;
    }
    if (noted_last)
        note_group(noted_last, pairs, state);
    state->out = position;
    state->sequence = sequence;
    return row;
}

/* Where in the pages the out-of-band records before a row begin, with no group between; -1 for none. */
static int64_t last_run(ShortRows table, int64_t row) {
    int64_t found = -1;
    while (row-- > 0) {
        const ChunkRow *chunk = ROW(ChunkRow, table, row);
        if ((chunk->type & TYPE_MASK) == COMMIT)
            break;
        if (is_begin(table, row, OOB_DATA))
            found = chunk->start;
    }
    return found;
}

/* Have the place be that of the record in a row, if that is one of those that were indexed. */
static inline void stop_at_row(ShortRows table, int64_t row, int64_t rows, Field *state) {
    if (row < rows)
        stop_at(ROW(ChunkRow, table, row)->start, state);
}

/* The commit record that comes next: its row, and the one after its rows, or -1 if it goes on after all that were
indexed; how many these are, and why no more. */
typedef struct { int64_t row, end, rows, status; } Commit;

/* Go on to the next commit record that is whole in the block, or, to skip it, has all that identifies its group.

With `runs`, groups on the way are framed, see `frame_run`. Pages are indexed one by one. */
static inline bool find_commit_record(Bytes pages, int64_t count, const Framing *framing, bool runs, bool skips,
                                      Commit *commit) {
    Field *state = framing->state.at;
    ShortRows table = framing->table;
    bool is_cut = false; /* the current record continues after the rows */
    while (true) {
        if (commit->row == commit->rows || is_cut) {
            if (commit->status != Status_NEED_MORE || state->page >= count)
                return false;
            commit->rows = index_chunks(pages, state->page + 1, state, table, commit->rows, &commit->status);
            is_cut = false;
            continue;
        }
        if (runs)
            commit->row = frame_run(pages, commit->row, commit->rows, framing);
        if (commit->row == commit->rows)
            continue;
        if (!is_begin(table, commit->row, COMMIT)) {
            commit->row++;
            continue;
        }
        commit->end = record_end(table, commit->row, commit->rows);
        is_cut = commit->end < 0 && !(skips && ROW(ChunkRow, table, commit->row)->size > GROUP_BEGIN);
        if (!is_cut)
            return true;
    }
}

/* Frame whole event groups of a block of `count` pages, each if all of it is here; skip other records.

Begins and ends where a record ends, or inside one that is skipped (`SKIP_TYPE`). `PAIRS` continues from what it was;
`RUN` is noted. Groups with a part out of band, and everything that is not as it should be, are for the reference path:
FALLBACK. */
static int64_t frame_table(Bytes pages, int64_t count, const Framing *framing) {
    Field *state = framing->state.at;
    state->groups = state->segments = state->segment_bytes = 0;
    Commit commit = {0, 0, 0, Status_NEED_MORE};
    while (find_commit_record(pages, count, framing, state->filters == 0, false, &commit)) {
        int64_t framed = Status_FULL;
        if (state->pairs + 1 < framing->pairs.rows) {
            framed = frame_group(pages, commit.row, commit.end, framing);
            if (framed == Status_FULL && state->groups == 0)
                framed = Status_FALLBACK;
        }
        if (framed != Status_DONE) {
            commit.status = framed;
            break;
        }
        state->groups++;
        commit.row = commit.end;
    }
    bool is_in_node = commit.row == commit.rows && state->skip_type == OOB_DATA;
    state->run = is_in_node ? last_run(framing->table, commit.rows) : -1;
    stop_at_row(framing->table, commit.row, commit.rows, state);
    return commit.status;
}

/* Skip groups of a block of pages up to the one in its domain's row of `skips`; DONE after that.

See `is_skipped`. Continues after the first chunks of a group whose rest is not here. FALLBACK before a group that is
not to be skipped, or is not as it should be. */
KERNEL(skip_table) {
    const Framing *framing = &a->framing;
    Field *state = framing->state.at;
    state->groups = 0;
    Commit commit = {0, 0, 0, Status_NEED_MORE};
    while (find_commit_record(a->pages, a->count, framing, false, true, &commit)) {
        bool is_whole = commit.end >= 0;
        int64_t end = is_whole ? commit.end : commit.rows;
        const uint8_t *first = find_begin(a->pages, framing->table, commit.row, end, framing->begin);
        bool is_last = first && is_whole && is_limit(first, a->skips);
        bool goes_on = is_last || (first && is_skipped(first, a->skips));
        if (!goes_on || note_group(first, framing->pairs, state) < 0) {
            commit.status = Status_FALLBACK;
            break;
        }
        state->groups++;
        commit.row = end;
        if (is_last) {
            commit.status = Status_DONE;
            break;
        }
    }
    stop_at_row(framing->table, commit.row, commit.rows, state);
    return commit.status;
}

/* Frame the events in a chunk of an out-of-band record without the first `TO_SKIP` bytes; DONE if all went.

Else the place is that chunk, and what was framed of it is to be skipped next time. */
static int64_t frame_node_chunk(Bytes pages, const ChunkRow *chunk, const Framing *framing) {
    Field *state = framing->state.at;
    int64_t status;
    int64_t start = chunk->start + CHUNK_HEADER, end = start + chunk->size;
    int64_t first = min64(start + state->to_skip, end);
    state->to_skip -= first - start;
    int64_t stopped = frame_bytes(pages, first, end, framing, &status);
    if (status != Status_DONE) {
        stop_at(chunk->start, state);
        if (chunk->type & CONT)
            state->skip_type = OOB_DATA;
        state->to_skip += stopped - start;
    }
    return status;
}

/* Frame the events in the out-of-band record whose begin, or other chunk, is the place.

Without the first `TO_SKIP` bytes. DONE after the record; NEED_MORE at the end of the block; FULL where the output ends;
FALLBACK where the pages or events are not as they should be. Output and `SEGMENTS` continue from what they were. */
static int64_t frame_node(Bytes pages, int64_t count, const Framing *framing) {
    Field *state = framing->state.at;
    bool is_begun = state->skip_type == OOB_DATA;
    Chunks chunks = {0, 0, Status_NEED_MORE};
    const ChunkRow *chunk;
    while ((chunk = next_chunk(pages, count, state, framing->table, &chunks))) {
        if ((chunk->type & TYPE_MASK) != OOB_DATA) {
            if (is_begun)
                continue; /* a state or dummy record inside */
            stop_at(chunk->start, state);
            return Status_FALLBACK;
        }
        is_begun = true;
        int64_t framed = frame_node_chunk(pages, chunk, framing);
        if (framed != Status_DONE || chunk->type & LAST)
            return framed;
    }
    return chunks.status == Status_NO_DATA ? Status_FALLBACK : chunks.status;
}

/* Go on with the node that an out-of-band record is: DONE if it is one of those of the way, or of another group, or
FULL where more nodes are wanted; FALLBACK where a node was passed. */
static int64_t find_way_node(int64_t place, NumberRows nodes, Field *state, Progress *progress) {
    if (progress->node == nodes.rows)
        return progress->has_more ? Status_FULL : Status_DONE;
    const NodeRow *node = ROW(NodeRow, nodes, progress->node);
    if (node->place == place) {
        progress->is_begun = 1;
        state->to_skip = node->header_size;
    }
    return node->place < place ? Status_FALLBACK : Status_DONE;
}

/* Frame the events in the out-of-band nodes on the way to a commit record, and check all of that way.

`base` is the file offset of the pages. What lies there besides is skipped, as `frame_table` does. DONE before the
commit record at `COMMIT`, if that is where one record ends and the next begins, and no other came before; NEED_MORE at
the end of the block; FULL where the output or the nodes at hand end; else as `frame_node`. */
static int64_t frame_way(Bytes pages, int64_t count, int64_t base, NumberRows nodes, const Framing *framing,
                         Progress *progress) {
    Field *state = framing->state.at;
    state->verified = 0;
    state->end = progress->commit - base;
    Chunks chunks = {0, 0, Status_NEED_MORE};
    const ChunkRow *chunk;
    while ((chunk = next_chunk(pages, count, state, framing->table, &chunks))) {
        int64_t type_byte = chunk->type, begin = chunk->start, found = Status_DONE;
        if ((type_byte & TYPE_MASK) == COMMIT)
            found = Status_FALLBACK;
        else if ((type_byte & TYPE_MASK) != OOB_DATA)
            continue;
        else if (!(type_byte & CONT) && !progress->is_begun)
            found = find_way_node(base + begin, nodes, state, progress);
        if (found != Status_DONE) {
            stop_at(begin, state);
            return found;
        }
        if (!progress->is_begun)
            continue;
        found = frame_node_chunk(pages, chunk, framing);
        if (found != Status_DONE)
            return found;
        if (type_byte & LAST) {
            progress->is_begun = 0;
            progress->node++;
        }
    }
    if (chunks.status != Status_NO_DATA)
        return chunks.status;
    bool is_there = base + state->page * PAGE + state->offset == progress->commit;
    return is_there && is_between_records(state) ? Status_DONE : Status_FALLBACK;
}

KERNEL(frame_table) { return frame_table(a->pages, a->count, &a->framing); }
KERNEL(frame_node) { return frame_node(a->pages, a->count, &a->framing); }
