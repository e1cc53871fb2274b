/* A kernel that makes commit records of small, plain groups of a traditional binlog. It stops before what is not plain.
The references: `ibbmaster.logs.classic.groups` for what is read, `ibbmaster.storage.ibb.appender` for the rest. */

/* Place a commit record, in chunks; returns the position after it. Without `pages`, only find that. */
static inline long place_record(const byte *record, long size, byte *pages, long position) {
    long done = 0;
    while (done < size) {
        long room = DATA - position % PAGE;
        if (room < CHUNK_SIZE_MIN) {
            if (pages)
                memset(pages + position, FILLER, (size_t)max64(room, 0));
            position = (position / PAGE + 1) * PAGE;
            continue;
        }
        long piece = min64(size - done, room - CHUNK_HEADER);
        if (pages) {
            byte *chunk = pages + position;
            chunk[0] = (byte)(COMMIT | (done > 0 ? CONT : 0) | (done + piece == size ? LAST : 0));
            store16(chunk + 1, piece);
            copy(chunk + CHUNK_HEADER, record + done, piece);
        }
        done += piece;
        position += CHUNK_HEADER + piece;
        if (position % PAGE == DATA)
            position = (position / PAGE + 1) * PAGE;
    }
    return position;
}

/* Whether an unsigned sequence number is above all that the pairs of a domain have. */
static bool is_newest(const PairRow *pair, long count, long domain_id, uint64_t sequence) {
    for (; count > 0; count--, pair++)
        if (pair->domain == domain_id && (uint64_t)pair->last >= sequence)
            return false;
    return true;
}

/* Where the last event of a group begins whose packets are at a place. */
static inline long last_event(const byte *source, long offset, long behind, long head) {
    while (offset + head + size_of(source + offset + head) < behind)
        offset += head + size_of(source + offset + head);
    return offset + head;
}

/* Append groups of source[READ_AT:] to the pages up to WRITE_END. Stops before a group that is not plain, not whole
here, too long, of an unknown pair, or not newer than all of its domain; whether more bytes may complete it. */
KERNEL(convert_groups) {
    const byte *source = a->source.at;
    byte *scratch = a->scratch.at;
    Conversion *numbers = a->numbers.at;
    Rows pairs = a->pairs;
    long offset = numbers->read_at, position = numbers->write_at;
    long checksum_bytes = numbers->checksum_bytes, head = numbers->head_bytes, behind;
    long record_max = min64(numbers->record_max, a->scratch.size);
    while (true) {
        long total, number = numbers->number;
        behind = group_end(a->source, offset, numbers->source_offset, checksum_bytes, head, &number, &a->roles,
                           &total);
        if (behind < 0 || total + 1 > record_max || place_record(NULL, total + 1, NULL, position) > numbers->write_end)
            break;
        const byte *event = source + offset + head;
        long pair = find_pair(event, pairs, numbers->pairs);
        if (pair >= numbers->pairs || !is_newest(pairs.at, numbers->pairs, domain_of(event), sequence_of(event)))
            break;
        PairRow *noted = ROW(PairRow, pairs, pair);
        noted->last = (long)sequence_of(event);
        noted->turn = ++numbers->noted;
        scratch[0] = 0; /* nothing is out of band */
        copy_events(source + offset, behind - offset, head, checksum_bytes, scratch + 1);
        numbers->last_at = offset + head;
        numbers->number = number;
        if (head == SEMI_SYNC_HEAD) {
            long last = last_event(source, offset, behind, head);
            numbers->answer_at = source[last - 1] == 1 ? last : numbers->answer_at;
        }
        offset = behind;
        position = place_record(scratch, 1 + total, a->pages.at, position);
        numbers->event_bytes += total;
    }
    numbers->read_at = offset;
    numbers->write_at = position;
    return behind == CUT_GROUP;
}

/* The reference: `ibbmaster.logs.store.writer`. */
KERNEL(seal_pages) {
    for (long page = 0; page < a->count; page++)
        store32(a->pages.at + page * PAGE + DATA, page_crc(a->pages.at + page * PAGE));
    return 0;
}
