/* Kernels that put the events of whole groups side by side, with an index of the groups and of the events.

The references: `ibbmaster.logs.log.event_groups` and `ibbmaster.logs.log.group_content`. */

/* Note a group whose events are data[start:end], and where it is in its file. */
static inline void note_collected(GroupRow *group, const uint8_t *data, int64_t start, int64_t end, int64_t file_no,
                                  int64_t file_offset, int64_t end_offset) {
    group->domain = domain_of(data + start);
    group->server = server_of(data + start);
    group->seq_no = (int64_t)sequence_of(data + start);
    group->timestamp = load32(data + start);
    group->file_no = file_no;
    group->file_offset = file_offset;
    group->end_file_no = file_no;
    group->end_offset = end_offset;
    group->start = start;
    group->end = end;
    group->first_number = 0;
}

/* Copy the events of whole inline groups of a block of `count` pages; skip other records.

Groups and data continue from GROUPS and OUT. DONE at the first group that begins at the end of the range or after it; a
group with a part out of band, and everything that is not as it should be, is for the reference path: FALLBACK. */
KERNEL(collect_table) {
    Bytes pages = a->pages;
    const Collecting *collecting = &a->collecting;
    Field *state = collecting->state.at;
    NumberRows groups = collecting->groups;
    uint8_t *data = collecting->data.at;
    int64_t position = state->out, found = state->groups;
    int64_t base = a->file_range.start_offset;
    int64_t place = -1, held = 0; /* of the current record, -1 for none, and bytes of it that were copied */
    Chunks chunks = {0, 0, Status_NEED_MORE};
    const ChunkRow *chunk;
    while ((chunk = next_chunk(pages, a->count, state, collecting->table, &chunks))) {
        int64_t start = chunk->start, size = chunk->size, type_byte = chunk->type;
        if ((type_byte & TYPE_MASK) != COMMIT || (type_byte & CONT && place < 0))
            continue; /* another record, or the rest of one that began before */
        if (!(type_byte & CONT)) {
            place = start;
            held = 0;
        }
        if (base + place >= a->file_range.end_offset) {
            chunks.status = Status_DONE;
            break;
        }
        if (found == groups.rows || size > collecting->data.size - position - held) {
            chunks.status = Status_FULL;
            break;
        }
        memcpy(data + position + held, pages.at + start + CHUNK_HEADER, (size_t)size);
        held += size;
        if (!(type_byte & LAST))
            continue;
        if (data[position] != 0 || !is_group(data, position + 1, position + held, NO_EVENT)) {
            chunks.status = Status_FALLBACK;
            break;
        }
        note_collected(ROW(GroupRow, groups, found), data, position + 1, position + held, a->file_range.file_no,
                       base + place, base + start + CHUNK_HEADER + size);
        found++;
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
    int64_t found = 0;
    for (int64_t row = 0; row < a->count; row++) {
        const GroupRow *group = ROW(GroupRow, a->groups, row);
        int64_t offset = group->start, number = group->first_number;
        while (offset < group->end && found < a->events.rows) {
            int64_t size = size_of(a->data.at + offset);
            EventRow *event = ROW(EventRow, a->events, found);
            event->start = offset;
            event->size = size;
            event->group = row;
            event->number = number;
            found++;
            number++;
            offset += max64(size, EVENT_HEADER);
        }
    }
    return found;
}
