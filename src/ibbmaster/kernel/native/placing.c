/* A kernel that writes the events of whole groups as a traditional file has them: with place, size and checksum. The
reference: `ibbmaster.logs.classic.series_writer`. */

/* Write the group data[start:end] to `out`; how many bytes, -1 for the reference. */
static long place_group(const byte *data, long start, long end, PlacedField *numbers, const Roles *roles, byte *out) {
    long checksum_bytes = numbers->checksum_bytes;
    long file_offset = numbers->file_offset, position = 0;
    long kind = group_kind(data + start, size_of(data + start));
    if (kind == NO_GROUP)
        return -1;
    const byte *role_of = roles_in(kind, roles);
    long size;
    for (long at = start; at < end; at += size) {
        const byte *event = data + at;
        byte *placed = out + position;
        size = size_of(event);
        bool is_first = at == start, is_last = at + size == end;
        long role = is_first ? CONTINUES : event_role(event, size, role_of[event[TYPE_OFFSET]]);
        if ((role != CONTINUES && role != ENDS) || (role == ENDS) != is_last || event[TYPE_OFFSET] > numbers->type_max)
            return -1;
        copy(placed, event, size);
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

/* Write the groups in rows [first:count] while the file and `out` have room and none is for the reference; the row of
the first that is left. */
KERNEL(place_groups) {
    PlacedField *numbers = a->numbers.at;
    long row = a->first, position = numbers->out;
    while (row < a->count && numbers->file_offset < numbers->file_max) {
        const GroupRow *group = ROW(GroupRow, a->groups, row);
        long start = group->start, end = group->end;
        long size_max = end - start + CHECKSUM_SIZE * ((end - start) / EVENT_HEADER + 1) + EVENT_HEADER;
        if (size_max > a->out.size - position)
            break;
        long size = place_group(a->data.at, start, end, numbers, &a->roles, a->out.at + position);
        if (size < 0)
            break;
        position += size;
        row++;
    }
    numbers->out = position;
    return row;
}
