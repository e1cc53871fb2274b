/* Kernels that put the events of whole groups side by side, and index them. The references:
`ibbmaster.logs.log.event_groups` and `ibbmaster.logs.log.group_content`. */

/* A group whose events are data[start:end], and where it is in its file. */
static inline GroupRow group_of(const byte *data, long start, long end, long file_no, long file_offset,
                                long end_offset) {
    const byte *event = data + start;
    return (GroupRow){domain_of(event), server_of(event), (long)sequence_of(event), load32(event), file_no, file_offset,
                      file_no, end_offset, start, end, 0};
}

/* Copy the events of whole inline groups of a block of `count` pages; skip other records. Groups and data continue from
GROUPS and OUT. DONE at the first group that begins behind the range; FALLBACK at one with a part out of band, or not as
it should be. */
KERNEL(collect_table) {
    Bytes pages = a->pages;
    const Collecting *collecting = &a->collecting;
    Field *state = collecting->state.at;
    Rows groups = collecting->groups;
    byte *data = collecting->data.at;
    long position = state->out, found = state->groups, base = a->file_range.start_offset;
    long place = -1, held = 0; /* of the current record, -1 for none, and bytes of it that were copied */
    Chunks chunks = chunks_of(pages, a->count, state, collecting->table);
    const ChunkRow *chunk;
    while ((chunk = next_chunk(&chunks))) {
        long start = chunk->start, size = chunk->size, type_byte = chunk->type;
        if ((type_byte & TYPE_MASK) != COMMIT || (type_byte & CONT && place < 0))
            continue; /* another record, or the rest of one that began before */
        if (!(type_byte & CONT)) {
            place = start;
            held = 0;
        }
        if (base + place >= a->file_range.end_offset) {
            chunks.status = DONE;
            break;
        }
        if (found == groups.rows || size > collecting->data.size - position - held) {
            chunks.status = FULL;
            break;
        }
        copy(data + position + held, pages.at + start + CHUNK_HEADER, size);
        held += size;
        if (!(type_byte & LAST))
            continue;
        if (data[position] != 0 || !is_group(data, position + 1, position + held, NO_EVENT)) {
            chunks.status = FALLBACK;
            break;
        }
        *ROW(GroupRow, groups, found++) = group_of(data, position + 1, position + held, a->file_range.file_no,
                                                   base + place, base + start + CHUNK_HEADER + size);
        position += held;
        place = -1;
    }
    if (place >= 0)
        stop_at(place, state);
    state->out = position;
    state->groups = found;
    return chunks.status;
}

/* Find the events of the first `count` groups, which are whole; returns how many there are. */
KERNEL(index_events) {
    long found = 0;
    for (long row = 0; row < a->count; row++) {
        const GroupRow *group = ROW(GroupRow, a->groups, row);
        long offset = group->start, number = group->first_number;
        while (offset < group->end && found < a->events.rows) {
            long size = size_of(a->data.at + offset);
            *ROW(EventRow, a->events, found++) = (EventRow){offset, size, row, number++};
            offset += max64(size, EVENT_HEADER);
        }
    }
    return found;
}
