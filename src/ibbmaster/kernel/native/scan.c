/* The kernel that knows pages and chunks; all others see the table that it leaves, and runs of bytes.

The reference: `ibbmaster.storage.ibb.scan`. */

/* Whether a chunk is in its place, and the types of the records that continue after it.

`record_type` is that of the current record, `nested_type` of a state or dummy record inside it; -1 stands for none. */
static inline bool nest(int64_t type_byte, int64_t *record_type, int64_t *nested_type) {
    int64_t found = type_byte & TYPE_MASK;
    bool goes_on = type_byte & CONT, is_last = type_byte & LAST, is_good;
    if (*nested_type >= 0) {
        is_good = found == *nested_type && goes_on;
        if (is_last)
            *nested_type = -1;
    } else if (*record_type < 0) {
        is_good = !goes_on;
        if (!is_last)
            *record_type = found;
    } else if (found == *record_type) {
        is_good = goes_on;
        if (is_last)
            *record_type = -1;
    } else {
        is_good = (found == GTID_STATE || found == DUMMY) && !goes_on;
        if (!is_last)
            *nested_type = found;
    }
    return is_good;
}

/* A place among chunks, the types of the records that continue there, and the row of the table that comes next. */
typedef struct { int64_t page, offset, record_type, nested_type, row; } ChunkPlace;

/* Note the chunks of the current page that begin before an offset: DONE, or as `index_chunks`. */
static inline int64_t index_page(const uint8_t *pages, int64_t page_end, ShortRows table, ChunkPlace *place) {
    while (place->offset < page_end) {
        int64_t start = place->page * PAGE + place->offset, header = load32(pages + start);
        int64_t type_byte = header & 0xFF, size = header >> 8 & 0xFFFF, end = place->offset + CHUNK_HEADER + size;
        if (type_byte == (COMMIT | LAST) && place->record_type < 0) { /* one of the many that are whole */
            if (size == 0 || end > DATA)
                return Status_FALLBACK;
            if (place->row == table.rows)
                return Status_FULL;
        } else {
            if (type_byte == FILLER)
                return Status_DONE;
            if (type_byte == 0)
                return Status_NO_DATA;
            int64_t record_type = place->record_type, nested_type = place->nested_type;
            bool is_good = nest(type_byte, &record_type, &nested_type);
            bool is_known = (uint64_t)KNOWN_TYPES >> (type_byte & TYPE_MASK) & 1;
            if (!is_good || !is_known || size == 0 || end > DATA)
                return Status_FALLBACK;
            if (place->row == table.rows)
                return Status_FULL;
            place->record_type = record_type;
            place->nested_type = nested_type;
        }
        ChunkRow *chunk = ROW(ChunkRow, table, place->row);
        chunk->start = (int32_t)start;
        chunk->size = (int32_t)size;
        chunk->type = (int32_t)type_byte;
        place->row++;
        place->offset = end;
    }
    return Status_DONE;
}

/* Note the chunks of `count` pages from a place on, as long as each page and chunk is as it should be.

The place is that of a chunk, in `state` with the types of the records that continue there; it moves after what was
noted. Returns the row after what was noted, from `row` on, and in `stopped` why no more was: NEED_MORE after the last
page, NO_DATA also at END, BAD_PAGE, FULL if the table is, else FALLBACK.

Consumers take page by page, so that they find it in the first cache of the core. */
static int64_t index_chunks(Bytes pages, int64_t count, Field *state, ShortRows table, int64_t row, int64_t *stopped) {
    ChunkPlace place = {
        state->page, state->offset, state->skip_type, state->nested_type, row,
    };
    const int64_t chunks_end = DATA - CHUNK_HEADER; /* where no chunk begins any more */
    int64_t status = Status_DONE;
    while (place.page < count && status == Status_DONE) {
        const uint8_t *page = pages.at + place.page * PAGE;
        int64_t end = state->end > 0 ? min64(chunks_end, state->end - place.page * PAGE) : chunks_end;
        if (place.offset >= end && end < chunks_end)
            status = Status_NO_DATA;
        else if (place.page >= state->verified && !is_page_good(page))
            status = Status_BAD_PAGE;
        else
            status = index_page(pages.at, end, table, &place);
        if (status == Status_DONE && place.offset >= end && end < chunks_end)
            status = Status_NO_DATA;
        if (status == Status_DONE) {
            place.page++;
            place.offset = 0;
        }
    }
    state->page = place.page;
    state->offset = place.offset;
    state->skip_type = place.record_type;
    state->nested_type = place.nested_type;
    *stopped = status == Status_DONE ? Status_NEED_MORE : status;
    return place.row;
}

/* Chunks one after the other: the row of the next one, how many of its page there are, and why no more come. */
typedef struct { int64_t row, rows, status; } Chunks;

/* The next chunk of `count` pages, which are indexed one by one; NULL after the last one. */
static inline const ChunkRow *next_chunk(Bytes pages, int64_t count, Field *state, ShortRows table, Chunks *chunks) {
    while (chunks->row == chunks->rows) {
        if (chunks->status != Status_NEED_MORE || state->page >= count)
            return NULL;
        chunks->rows = index_chunks(pages, state->page + 1, state, table, 0, &chunks->status);
        chunks->row = 0;
    }
    return ROW(ChunkRow, table, chunks->row++);
}

/* Whether a record of a type begins with a chunk. */
static inline bool is_begin(ShortRows table, int64_t row, int64_t record_type) {
    return (ROW(ChunkRow, table, row)->type & (CONT | TYPE_MASK)) == record_type;
}

/* The row after the last chunk of the record that begins at a row; -1 if that is not among the `count`. */
static inline int64_t record_end(ShortRows table, int64_t row, int64_t count) {
    int64_t record_type = ROW(ChunkRow, table, row)->type & TYPE_MASK;
    for (; row < count; row++) {
        int64_t type_byte = ROW(ChunkRow, table, row)->type;
        if (type_byte & LAST && (type_byte & TYPE_MASK) == record_type)
            return row + 1;
    }
    return -1;
}

/* Have the place be that of a record that begins at `start` of the pages. */
static inline void stop_at(int64_t start, Field *state) {
    state->page = start / PAGE;
    state->offset = start % PAGE;
    state->skip_type = state->nested_type = -1;
}

/* Whether the place is where one record ends and the next begins. */
static inline bool is_between_records(const Field *state) { return state->skip_type < 0 && state->nested_type < 0; }

KERNEL(index_chunks) { return index_chunks(a->pages, a->count, a->state.at, a->table, a->row, more); }
