/* The kernel that knows pages and chunks; others see the table that it leaves. The reference:
`ibbmaster.storage.ibb.scan`. */

static inline bool is_known_type(long record_type) {
    return RecordType_COMMIT <= record_type && record_type <= RecordType_XA_COMPLETE;
}

/* Whether a chunk is in its place. Moves the type of the current record, and of one inside it; -1 for none. */
static inline bool nest(long type_byte, long *record_type, long *nested_type) {
    long found = type_byte & TYPE_MASK;
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
        is_good = (found == GTID_STATE || found == RecordType_DUMMY) && !goes_on;
        if (!is_last)
            *nested_type = found;
    }
    return is_good;
}

/* A chunk's place, the types of the records that continue there, and the next row of the table. */
typedef struct { long page, offset, record_type, nested_type, row; } ChunkPlace;

/* Note the chunks of the current page that begin before an offset: DONE, or as `index_chunks`. */
static inline long index_page(const byte *pages, long page_end, ShortRows table, ChunkPlace *place) {
    while (place->offset < page_end) {
        long start = place->page * PAGE + place->offset, header = load32(pages + start);
        long type_byte = header & 0xFF, size = header >> 8 & 0xFFFF, end = place->offset + CHUNK_HEADER + size;
        long record_type = place->record_type, nested_type = place->nested_type;
        if (type_byte != (COMMIT | LAST) || record_type >= 0) { /* not one of the many that are whole */
            if (type_byte == FILLER)
                return DONE;
            if (type_byte == 0)
                return NO_DATA;
            if (!nest(type_byte, &record_type, &nested_type) || !is_known_type(type_byte & TYPE_MASK))
                return FALLBACK;
        }
        if (size == 0 || end > DATA)
            return FALLBACK;
        if (place->row == table.rows)
            return FULL;
        *ROW(ChunkRow, table, place->row++) = (ChunkRow){(int32_t)start, (int32_t)size, (int32_t)type_byte};
        place->record_type = record_type;
        place->nested_type = nested_type;
        place->offset = end;
    }
    return DONE;
}

/* Note the chunks of `count` pages from the place in `state` on, as long as each page and chunk is as it should be; the
place moves behind them. Returns the row after what was noted, from `row` on, and in `stopped` why no more was:
NEED_MORE after the last page, NO_DATA also at END, BAD_PAGE, FULL if the table is, else FALLBACK. Consumers take page
by page, so that they find it in the first cache. */
static long index_chunks(Bytes pages, long count, Field *state, ShortRows table, long row, long *stopped) {
    ChunkPlace place = {state->page, state->offset, state->skip_type, state->nested_type, row};
    const long chunks_end = DATA - CHUNK_HEADER; /* where no chunk begins any more */
    long status = DONE;
    while (place.page < count && status == DONE) {
        long end = state->end > 0 ? min64(chunks_end, state->end - place.page * PAGE) : chunks_end;
        if (place.offset >= end && end < chunks_end)
            status = NO_DATA;
        else if (place.page >= state->verified && !is_page_good(pages.at + place.page * PAGE))
            status = BAD_PAGE;
        else
            status = index_page(pages.at, end, table, &place);
        if (status == DONE && place.offset >= end && end < chunks_end)
            status = NO_DATA;
        if (status == DONE) {
            place.page++;
            place.offset = 0;
        }
    }
    state->page = place.page;
    state->offset = place.offset;
    state->skip_type = place.record_type;
    state->nested_type = place.nested_type;
    *stopped = status == DONE ? NEED_MORE : status;
    return place.row;
}

/* Chunks: the row of the next one, how many are indexed, why no more come, and the row behind a commit record, -1 if it
goes on after those. */
typedef struct {
    Bytes pages;
    long count;
    Field *state;
    ShortRows table;
    long row, rows, status, end;
} Chunks;

static inline Chunks chunks_of(Bytes pages, long count, Field *state, ShortRows table) {
    return (Chunks){pages, count, state, table, 0, 0, NEED_MORE, 0};
}

/* Index one page more; its chunks are put behind `kept` rows. False if there is none. */
static inline bool index_next(Chunks *chunks, long kept) {
    Field *state = chunks->state;
    if (chunks->status != NEED_MORE || state->page >= chunks->count)
        return false;
    chunks->rows = index_chunks(chunks->pages, state->page + 1, state, chunks->table, kept, &chunks->status);
    return true;
}

static inline const ChunkRow *next_chunk(Chunks *chunks) {
    while (chunks->row == chunks->rows) {
        if (!index_next(chunks, 0))
            return NULL;
        chunks->row = 0;
    }
    return ROW(ChunkRow, chunks->table, chunks->row++);
}

static inline bool is_begin(ShortRows table, long row, long record_type) {
    return (ROW(ChunkRow, table, row)->type & (CONT | TYPE_MASK)) == record_type;
}

/* The row after the last chunk of the record that begins at a row; -1 if that is not among the `count`. */
static inline long record_end(ShortRows table, long row, long count) {
    long record_type = ROW(ChunkRow, table, row)->type & TYPE_MASK;
    for (; row < count; row++)
        if ((ROW(ChunkRow, table, row)->type & (LAST | TYPE_MASK)) == (LAST | record_type))
            return row + 1;
    return -1;
}

/* Have the place be that of a record that begins at `start` of the pages. */
static inline void stop_at(long start, Field *state) {
    state->page = start / PAGE;
    state->offset = start % PAGE;
    state->skip_type = state->nested_type = -1;
}

static inline bool is_between_records(const Field *state) { return state->skip_type < 0 && state->nested_type < 0; }

KERNEL(index_chunks) { return index_chunks(a->pages, a->count, a->state.at, a->table, a->row, more); }
