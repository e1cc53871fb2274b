/* A kernel that writes the events of whole groups as a traditional file has them: with place, size and checksum.

The reference: `ibbmaster.logs.classic.series_writer`. */

/* Write the group data[start:end] to `out`; how many bytes, -1 for the reference. */
static int64_t place_group(const uint8_t *data, int64_t start, int64_t end, PlacedField *numbers, const Roles *roles,
                           uint8_t *out) {
    int64_t checksum_bytes = numbers->checksum_bytes;
    int64_t file_offset = numbers->file_offset, position = 0;
    int64_t kind = group_kind(data + start, size_of(data + start));
    if (kind == NO_GROUP)
        return -1;
    const uint8_t *role_of = roles_in(kind, roles);
    int64_t size;
    for (int64_t at = start; at < end; at += size) {
        const uint8_t *event = data + at;
        uint8_t *placed = out + position;
        size = size_of(event);
        bool is_first = at == start, is_last = at + size == end;
        int64_t role = is_first ? CONTINUES : event_role(event, size, role_of[event[TYPE_OFFSET]]);
        if ((role != CONTINUES && role != ENDS) || (role == ENDS) != is_last || event[TYPE_OFFSET] > numbers->type_max)
            return -1;
        memcpy(placed, event, (size_t)size);
        file_offset += size + checksum_bytes;
        store32(placed + SIZE_OFFSET, size + checksum_bytes);
        bool says = is_first || is_last || numbers->says_all;
        store32(placed + LOG_POS_OFFSET, says ? file_offset : 0);
        if (checksum_bytes > 0)
            store32(placed + size, crc32(placed, size, 0));
        position += size + checksum_bytes;
    }
    numbers->file_offset = file_offset;
    return position;
}

/* Write the groups in rows [first:count] while the file has room for one more; the row of the first that is left.

That is one for which there is no room in `out`, one after a file that is full, or one for the reference. */
KERNEL(place_groups) {
    PlacedField *numbers = a->numbers.at;
    int64_t row = a->first, position = numbers->out;
    while (row < a->count && numbers->file_offset < numbers->file_max) {
        const GroupRow *group = ROW(GroupRow, a->groups, row);
        int64_t start = group->start, end = group->end;
        int64_t size_max = end - start + CHECKSUM_SIZE * ((end - start) / EVENT_HEADER + 1) + EVENT_HEADER;
        if (size_max > a->out.size - position)
            break;
        int64_t size = place_group(a->data.at, start, end, numbers, &a->roles, a->out.at + position);
        if (size < 0)
            break;
        position += size;
        row++;
    }
    numbers->out = position;
    return row;
}
