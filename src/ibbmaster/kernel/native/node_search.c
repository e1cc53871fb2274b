/* A kernel that finds out-of-band nodes in the order of their data. The references:
`ibbmaster.storage.ibb.oob.walk_oob` and `ibbmaster.logs.log.out_of_band`. */

#define TAG_BITS 3 /* of a compressed integer */
#define TAG_MASK 7
#define LONG_TAG 7 /* for the reference */

/* A compressed integer; leaves the offset after it, -1 if it runs over the end or is long. */
static inline long decode_int(const byte *source, long *offset, long end) {
    long size = (source[*offset] & TAG_MASK) + 1;
    uint64_t value = load64(source + *offset) & ((UINT64_C(1) << 8 * (size & 7)) - 1);
    *offset = *offset + size > end || size > LONG_TAG ? -1 : *offset + size;
    return (long)(value >> TAG_BITS);
}

static bool read_page(long file, long first, byte *page) {
    return first >= PAGE && pread((int)file, page, PAGE, first) == PAGE && is_page_good(page);
}

/* Keep the head of a node in a chunk of this type behind the page, after `held` bytes; how many there are then, -1 for
another chunk. */
static long keep_head(byte *page, long offset, long chunk_type, long held) {
    long chunk = load32(page + offset), start = offset + CHUNK_HEADER, size = chunk >> 8 & 0xFFFF;
    if ((chunk & 0xFF & ~LAST) != chunk_type || size == 0 || start + size > DATA)
        return -1;
    long taken = min64(size, NODE_HEAD_MIN - held);
    copy(page + PAGE + held, page + start, taken);
    return held + taken;
}

/* Read the header of the node at a place, which may go on on the next page, after a state. */
static bool read_header(long file, long place, byte *page, long *header) {
    long offset = place & (PAGE - 1), first = place - offset;
    if (!read_page(file, first, page) || offset > DATA - CHUNK_HEADER - 1)
        return false;
    long held = keep_head(page, offset, OOB_DATA, 0);
    if (0 < held && held < NODE_HEAD_MIN && !(page[offset] & LAST)) {
        if (!read_page(file, first + PAGE, page))
            return false;
        offset = page[0] == (GTID_STATE | LAST) ? CHUNK_HEADER + (load32(page) >> 8 & 0xFFFF) : 0;
        if (offset > DATA - CHUNK_HEADER - 1)
            return false;
        held = keep_head(page, offset, OOB_DATA | CONT, held);
    }
    if (held < 0)
        return false;
    offset = PAGE;
    for (int index = 0; index < 5; index++) {
        if (offset < 0 || offset >= PAGE + held)
            return false;
        header[index] = decode_int(page, &offset, PAGE + held);
    }
    header[5] = offset - PAGE;
    return offset >= 0;
}

/* Note the next nodes in `nodes`, as many as there is room for; gives how many, and why no more. `path` is what is left
to look at, at first the last node of the stream. DONE after the last node, FULL where there are more; FALLBACK where a
node is in another file, or something is wrong. */
KERNEL(find_nodes) {
    NodeScan *search = a->search.at;
    long *header = a->header.at, found = 0;
    Rows path = a->path;
    *more = FALLBACK;
    while (search->path > 0 && found < a->nodes.rows) {
        long row = search->path - 1;
        UnreadNodeRow *unread = ROW(UnreadNodeRow, path, row);
        long place = unread->place, number = unread->number;
        if (unread->header_size > 0) { /* all that comes before it was given */
            if (number != search->next || (number == 0 && place != search->first))
                return found;
            *ROW(NodeRow, a->nodes, found++) = (NodeRow){search->file_no, place, unread->header_size};
            search->next++;
            search->path--;
            continue;
        }
        if (!read_header(a->file, place, a->page.at, header))
            return found;
        long index = header[0], left_file = header[1], left = header[2], right_file = header[3], right = header[4];
        bool has_left = left_file != 0 || left != 0, has_right = right_file != 0 || right != 0;
        if ((number >= 0 && number != index) || (has_left && (!has_right || left_file != search->file_no)) ||
            (has_right && right_file != search->file_no) || has_right == (index == 0) || row + 3 > path.rows)
            return found;
        unread->number = index;
        unread->header_size = header[5];
        bool is_leftmost = unread->is_leftmost;
        if (has_right && (has_left || is_leftmost))
            *ROW(UnreadNodeRow, path, ++row) = (UnreadNodeRow){right, index - 1, is_leftmost && !has_left, 0};
        if (has_left)
            *ROW(UnreadNodeRow, path, ++row) = (UnreadNodeRow){left, -1, is_leftmost, 0};
        search->path = row + 1;
    }
    if (search->path > 0)
        *more = FULL;
    else if (search->next == search->nodes)
        *more = DONE;
    return found;
}
