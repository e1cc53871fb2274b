/* Kernels that frame whole groups in a block of pages, skip them, and frame parts of groups out of band. The
references: `ibbmaster.logs.log.event_groups` and `ibbmaster.logs.log.out_of_band` with
`ibbmaster.replication.dump.framing`. */

/* The first event of the commit record in rows [row:end], as far as `begin` has room for it. NULL if it is no GTID
event, or something is out of band. */
static const byte *find_begin(Bytes pages, ShortRows table, long row, long end, Bytes begin) {
    long size = 0;
    for (; row < end && size < begin.size; row++) {
        const ChunkRow *chunk = ROW(ChunkRow, table, row);
        long taken = (chunk->type & TYPE_MASK) == COMMIT ? min64(chunk->size, begin.size - size) : 0;
        copy(begin.at + size, pages.at + chunk->start + CHUNK_HEADER, taken);
        size += taken;
    }
    return begin.at[0] == 0 && is_group_begin(begin.at + 1, size - 1) ? begin.at + 1 : NULL;
}

/* Frame the group in a commit record's rows [row:end], and note it; nothing of it is left if that does not go. */
static long frame_group(Bytes pages, long row, long end, const Framing *framing) {
    Field *state = framing->state.at;
    const byte *first = find_begin(pages, framing->table, row, end, framing->begin);
    if (!first || is_step_back(first, framing->pairs, state))
        return FALLBACK;
    Mark before = mark_of(state);
    long to_skip = 1, status = DONE;
    for (; row < end && status == DONE; row++) {
        const ChunkRow *chunk = ROW(ChunkRow, framing->table, row);
        if ((chunk->type & TYPE_MASK) == COMMIT) {
            long start = chunk->start + CHUNK_HEADER;
            frame_bytes(pages, start + to_skip, start + chunk->size, framing, &status);
            to_skip = 0;
        }
    }
    if (status == DONE && (state->event_left || state->head_held))
        status = FALLBACK;
    if (status == DONE) {
        note_group(first, framing->pairs, state);
    } else {
        go_back(state, before);
        state->event_left = state->head_held = state->empty_tail = 0;
    }
    return status;
}

/* Frame groups of one chunk each; returns the row of the first other. A pair is noted when another one comes, as that
costs as much as an event. */
static long frame_run(Bytes pages, long row, long count, const Framing *framing) {
    Field *state = framing->state.at;
    Rows pairs = framing->pairs;
    long position = state->out, sequence = state->sequence, status = DONE;
    ShortEvents whole = short_events(framing);
    whole.filters = 0; /* there are none, which the compiler does not know */
    whole.size_max = EVENT_MAX; /* a chunk has no event that is longer than a packet */
    const byte *noted_last = NULL; /* the group that is to be noted; none yet */
    for (; row < count; row++) {
        const ChunkRow *chunk = ROW(ChunkRow, framing->table, row);
        if (chunk->type != (COMMIT | LAST)) {
            if (is_begin(framing->table, row, COMMIT))
                break;
            continue;
        }
        long start = chunk->start + CHUNK_HEADER + 1, end = start - 1 + chunk->size;
        const byte *event = pages.at + start;
        if (event[-1] != 0 || !is_group_begin(event, end - start) || state->pairs >= pairs.rows - 1)
            break;
        if (noted_last) {
            if (server_of(event) != server_of(noted_last) || domain_of(event) != domain_of(noted_last)) {
                note_group(noted_last, pairs, state);
                noted_last = NULL;
            } else if (sequence_of(event) <= sequence_of(noted_last)) {
                break;
            }
        }
        if (!noted_last && is_step_back(event, pairs, state))
            break;
        long after = position, number = sequence;
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

/* Where the out-of-band records before a row begin, with no group between; -1 for none. */
static long last_run(ShortRows table, long row) {
    long found = -1;
    while (row-- > 0 && (ROW(ChunkRow, table, row)->type & TYPE_MASK) != COMMIT)
        if (is_begin(table, row, OOB_DATA))
            found = ROW(ChunkRow, table, row)->start;
    return found;
}

/* Have the place be that of the current record; returns why no more come. */
static inline long stopped_at(const Chunks *chunks) {
    if (chunks->row < chunks->rows)
        stop_at(ROW(ChunkRow, chunks->table, chunks->row)->start, chunks->state);
    return chunks->status;
}

/* Go on to the next commit record that is whole in the block, or, to skip it, has all that identifies its group. With
`runs`, groups on the way are framed, see `frame_run`. Pages are indexed one by one. */
static inline bool find_commit_record(Chunks *chunks, const Framing *framing, bool runs, bool skips) {
    bool is_cut = false; /* the current record continues after the rows */
    while (true) {
        if (chunks->row == chunks->rows || is_cut) {
            if (!index_next(chunks, chunks->rows))
                return false;
            is_cut = false;
            continue;
        }
        if (runs)
            chunks->row = frame_run(chunks->pages, chunks->row, chunks->rows, framing);
        if (chunks->row == chunks->rows)
            continue;
        if (!is_begin(chunks->table, chunks->row, COMMIT)) {
            chunks->row++;
            continue;
        }
        chunks->end = record_end(chunks->table, chunks->row, chunks->rows);
        is_cut = chunks->end < 0 && !(skips && ROW(ChunkRow, chunks->table, chunks->row)->size > GROUP_BEGIN);
        if (!is_cut)
            return true;
    }
}

/* Frame whole groups of a block of `count` pages; skip other records. Begins and ends where a record ends, or inside
one that is skipped (SKIP_TYPE). PAIRS continues; RUN is noted. FALLBACK at groups with a part out of band, and at what
is not as it should be. */
static long frame_table(Bytes pages, long count, const Framing *framing) {
    Field *state = framing->state.at;
    state->groups = state->segments = state->segment_bytes = 0;
    Chunks chunks = chunks_of(pages, count, state, framing->table);
    while (find_commit_record(&chunks, framing, state->filters == 0, false)) {
        long framed = FULL;
        if (state->pairs + 1 < framing->pairs.rows) {
            framed = frame_group(pages, chunks.row, chunks.end, framing);
            if (framed == FULL && state->groups == 0)
                framed = FALLBACK;
        }
        if (framed != DONE) {
            chunks.status = framed;
            break;
        }
        state->groups++;
        chunks.row = chunks.end;
    }
    bool is_in_node = chunks.row == chunks.rows && state->skip_type == OOB_DATA;
    state->run = is_in_node ? last_run(framing->table, chunks.rows) : -1;
    return stopped_at(&chunks);
}

/* Skip groups of a block of pages up to the one in its domain's row of `skips`, see `skip_order`; DONE after that.
Continues after the first chunks of a group whose rest is not here. FALLBACK before a group that is not to be skipped,
or is not as it should be. */
KERNEL(skip_table) {
    const Framing *framing = &a->framing;
    Field *state = framing->state.at;
    state->groups = 0;
    Chunks chunks = chunks_of(a->pages, a->count, state, framing->table);
    while (chunks.status != DONE && find_commit_record(&chunks, framing, false, true)) {
        bool is_whole = chunks.end >= 0;
        long end = is_whole ? chunks.end : chunks.rows;
        const byte *first = find_begin(a->pages, framing->table, chunks.row, end, framing->begin);
        bool is_last = first && is_whole && skip_order(first, a->skips) == 0;
        bool goes_on = is_last || (first && skip_order(first, a->skips) < 0);
        if (!goes_on || note_group(first, framing->pairs, state) < 0) {
            chunks.status = FALLBACK;
            break;
        }
        state->groups++;
        chunks.row = end;
        if (is_last)
            chunks.status = DONE;
    }
    return stopped_at(&chunks);
}

/* Frame a chunk of an out-of-band record without the first `TO_SKIP` bytes; DONE if all went. Else the place is that
chunk, and what was framed of it is to be skipped next time. */
static long frame_node_chunk(Bytes pages, const ChunkRow *chunk, const Framing *framing) {
    Field *state = framing->state.at;
    long start = chunk->start + CHUNK_HEADER, end = start + chunk->size;
    long first = min64(start + state->to_skip, end), status;
    state->to_skip -= first - start;
    long stopped = frame_bytes(pages, first, end, framing, &status);
    if (status != DONE) {
        stop_at(chunk->start, state);
        if (chunk->type & CONT)
            state->skip_type = OOB_DATA;
        state->to_skip += stopped - start;
    }
    return status;
}

/* Frame the out-of-band record of which a chunk is the place, without the first TO_SKIP bytes. DONE after it; NEED_MORE
at the end of the block; FULL where the output ends; FALLBACK where something is wrong. Output and SEGMENTS continue. */
static long frame_node(Bytes pages, long count, const Framing *framing) {
    Field *state = framing->state.at;
    bool is_begun = state->skip_type == OOB_DATA;
    Chunks chunks = chunks_of(pages, count, state, framing->table);
    const ChunkRow *chunk;
    while ((chunk = next_chunk(&chunks))) {
        if ((chunk->type & TYPE_MASK) != OOB_DATA) {
            if (is_begun)
                continue; /* a state or dummy record inside */
            stop_at(chunk->start, state);
            return FALLBACK;
        }
        is_begun = true;
        long framed = frame_node_chunk(pages, chunk, framing);
        if (framed != DONE || chunk->type & LAST)
            return framed;
    }
    return chunks.status == NO_DATA ? FALLBACK : chunks.status;
}

/* Go on with the node that begins at a place: DONE if it is on the way, or of another group; FULL where more nodes are
wanted; FALLBACK where a node was passed. */
static long find_way_node(long place, Rows nodes, Field *state, Progress *progress) {
    if (progress->node == nodes.rows)
        return progress->has_more ? FULL : DONE;
    const NodeRow *node = ROW(NodeRow, nodes, progress->node);
    if (node->place == place) {
        progress->is_begun = 1;
        state->to_skip = node->header_size;
    }
    return node->place < place ? FALLBACK : DONE;
}

/* Frame the out-of-band nodes on the way to a commit record, and check all of that way; skip what lies there besides.
`base` is the file offset of the pages. DONE before the commit record at `COMMIT`, if a record ends there and no
other commit came before; NEED_MORE behind the block; FULL where output or nodes end; else as `frame_node`. */
static long frame_way(Bytes pages, long count, long base, Rows nodes, const Framing *framing,
                      Progress *progress) {
    Field *state = framing->state.at;
    state->verified = 0;
    state->end = progress->commit - base;
    Chunks chunks = chunks_of(pages, count, state, framing->table);
    const ChunkRow *chunk;
    while ((chunk = next_chunk(&chunks))) {
        long type_byte = chunk->type, begin = chunk->start, found = DONE;
        if ((type_byte & TYPE_MASK) == COMMIT)
            found = FALLBACK;
        else if ((type_byte & TYPE_MASK) != OOB_DATA)
            continue;
        else if (!(type_byte & CONT) && !progress->is_begun)
            found = find_way_node(base + begin, nodes, state, progress);
        if (found != DONE) {
            stop_at(begin, state);
            return found;
        }
        if (!progress->is_begun)
            continue;
        found = frame_node_chunk(pages, chunk, framing);
        if (found != DONE)
            return found;
        if (type_byte & LAST) {
            progress->is_begun = 0;
            progress->node++;
        }
    }
    if (chunks.status != NO_DATA)
        return chunks.status;
    bool is_there = base + state->page * PAGE + state->offset == progress->commit;
    return is_there && is_between_records(state) ? DONE : FALLBACK;
}

KERNEL(frame_table) { return frame_table(a->pages, a->count, &a->framing); }
KERNEL(frame_node) { return frame_node(a->pages, a->count, &a->framing); }
