/* CRC-32 as zlib has it, with an instruction of the CPU or by carry-less multiplication. For the latter, lanes of 16
bytes are folded into each other: a lane is multiplied by what a one becomes on the way to another, and added to it.
The reference: `zlib.crc32`. */

#ifdef __aarch64__
#define after_word(crc, word) __crc32d(crc, word)
#define after_byte(crc, one) __crc32b(crc, one)
#else
#define ZLIB 0xEDB88320u /* its polynomial, lowest power first */

static uint32_t byte_tables[8][256]; /* what a byte does to the register after 0 to 7 more bytes of zeros */

__attribute__((constructor)) static void make_byte_tables(void) {
    for (uint32_t one = 0; one < 256; one++) {
        uint32_t crc = one;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? ZLIB : 0);
        byte_tables[0][one] = crc;
    }
    for (int index = 1; index < 8; index++)
        for (int one = 0; one < 256; one++) {
            uint32_t crc = byte_tables[index - 1][one];
            byte_tables[index][one] = (crc >> 8) ^ byte_tables[0][crc & 0xFF];
        }
}

static inline uint32_t after_word(uint32_t before, uint64_t word) {
    uint32_t crc = 0;
    for (int index = 0; index < 8; index++)
        crc ^= byte_tables[7 - index][(word ^ before) >> (8 * index) & 0xFF];
    return crc;
}

static inline uint32_t after_byte(uint32_t crc, byte one) { return byte_tables[0][(crc ^ one) & 0xFF] ^ (crc >> 8); }
#endif

static uint32_t by_words(uint32_t crc, const byte *at, long size) {
    for (; size >= 8; at += 8, size -= 8)
        crc = after_word(crc, load64(at));
    for (; size > 0; at++, size--)
        crc = after_byte(crc, *at);
    return crc;
}

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>

#define MULTIPLYING __attribute__((target("pclmul,sse4.1")))
#define MULTIPLYING_WIDE __attribute__((target("pclmul,vpclmulqdq,avx512f")))
#define LANE 16            /* bytes */
#define WIDE (4 * LANE)    /* bytes of the widest register */
#define WIDE_ENABLED 0xE6u /* what of it the system has to keep where it changes processes */
#define OVER_LANE _mm_set_epi64x(0x0ccaa009e, 0x1751997d0) /* 128 - 32, 128 + 32 */
#define OVER_FOUR _mm_set_epi64x(0x1c6e41596, 0x154442bd4) /* 4 * 128 - 32, 4 * 128 + 32 */

static int lanes_at_once; /* that this CPU multiplies: 4, 1 or 0 */

__attribute__((constructor)) static void ask_cpu(void) {
    unsigned eax, ebx, ecx, edx, enabled = 0;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_PCLMUL))
        return;
    lanes_at_once = 1;
    if (ecx & bit_OSXSAVE)
        __asm__("xgetbv" : "=a"(enabled), "=d"(edx) : "c"(0));
    if ((enabled & WIDE_ENABLED) == WIDE_ENABLED && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
        lanes_at_once = ebx & bit_AVX512F && ecx & bit_VPCLMULQDQ ? 4 : 1;
}

static inline __m128i lane_at(const byte *at) { return _mm_loadu_si128((const __m128i *)at); }

/* A lane and another further on, as one; `over` turns its halves into what they are worth there. */
MULTIPLYING static inline __m128i folded(__m128i lane, __m128i over, __m128i onto) {
    __m128i low = _mm_clmulepi64_si128(lane, over, 0x00), high = _mm_clmulepi64_si128(lane, over, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), onto);
}

MULTIPLYING_WIDE static inline __m512i folded_wide(__m512i lanes, __m512i over, __m512i onto) {
    __m512i low = _mm512_clmulepi64_epi128(lanes, over, 0x00), high = _mm512_clmulepi64_epi128(lanes, over, 0x11);
    return _mm512_xor_si512(_mm512_xor_si512(low, high), onto);
}

/* Fold lanes four by four, 16 at least, into one; leaves the place behind them. */
MULTIPLYING_WIDE static __m128i fold_wide(uint32_t crc, const byte **begin, const byte *end) {
    const __m512i over_sixteen = _mm512_broadcast_i32x4(_mm_set_epi64x(0x1322d1430, 0x11542778a));
    const __m512i over_four = _mm512_broadcast_i32x4(OVER_FOUR);
    const __m128i over_lane = OVER_LANE;
    const byte *at = *begin;
    __m512i first = _mm512_xor_si512(_mm512_loadu_si512(at), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    __m512i second = _mm512_loadu_si512(at + WIDE), third = _mm512_loadu_si512(at + 2 * WIDE);
    __m512i fourth = _mm512_loadu_si512(at + 3 * WIDE);
    for (at += 4 * WIDE; end - at >= 4 * WIDE; at += 4 * WIDE) {
        first = folded_wide(first, over_sixteen, _mm512_loadu_si512(at));
        second = folded_wide(second, over_sixteen, _mm512_loadu_si512(at + WIDE));
        third = folded_wide(third, over_sixteen, _mm512_loadu_si512(at + 2 * WIDE));
        fourth = folded_wide(fourth, over_sixteen, _mm512_loadu_si512(at + 3 * WIDE));
    }
    first = folded_wide(folded_wide(folded_wide(first, over_four, second), over_four, third), over_four, fourth);
    for (; end - at >= WIDE; at += WIDE)
        first = folded_wide(first, over_four, _mm512_loadu_si512(at));
    *begin = at;
    __m128i lane = _mm512_castsi512_si128(first);
    lane = folded(lane, over_lane, _mm512_extracti32x4_epi32(first, 1));
    lane = folded(lane, over_lane, _mm512_extracti32x4_epi32(first, 2));
    return folded(lane, over_lane, _mm512_extracti32x4_epi32(first, 3));
}

/* The register after a lane of bytes at least. Constants are powers of x modulo the polynomial. */
MULTIPLYING static uint32_t fold(uint32_t crc, const byte *at, long size) {
    const __m128i over_lane = OVER_LANE, over_four = OVER_FOUR;
    const __m128i over_half = _mm_set_epi64x(0, 0x163cd6124); /* 64 */
    const __m128i division = _mm_set_epi64x(0x1f7011641, 0x1db710641); /* x^64 divided by the polynomial, and that */
    const __m128i lower = _mm_set1_epi64x(0xFFFFFFFF);
    const byte *end = at + size;
    __m128i lane;
    if (size >= 4 * WIDE && lanes_at_once == 4) {
        lane = fold_wide(crc, &at, end);
    } else {
        lane = _mm_xor_si128(lane_at(at), _mm_cvtsi32_si128((int)crc));
        at += LANE;
    }
    if (end - at >= 3 * LANE) {
        __m128i second = lane_at(at), third = lane_at(at + LANE), fourth = lane_at(at + 2 * LANE);
        for (at += 3 * LANE; end - at >= 4 * LANE; at += 4 * LANE) {
            lane = folded(lane, over_four, lane_at(at));
            second = folded(second, over_four, lane_at(at + LANE));
            third = folded(third, over_four, lane_at(at + 2 * LANE));
            fourth = folded(fourth, over_four, lane_at(at + 3 * LANE));
        }
        lane = folded(folded(folded(lane, over_lane, second), over_lane, third), over_lane, fourth);
    }
    for (; end - at >= LANE; at += LANE)
        lane = folded(lane, over_lane, lane_at(at));
    if (at < end) { /* the lane and these bytes, divided so that the second part is a whole lane */
        static const byte moves[3 * LANE] = {
            [0 ... 15] = 128, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, [32 ... 47] = 128};
        __m128i up = lane_at(moves + (end - at)), down = lane_at(moves + LANE + (end - at));
        __m128i second = _mm_blendv_epi8(_mm_shuffle_epi8(lane, down), lane_at(end - LANE), down);
        lane = folded(_mm_shuffle_epi8(lane, up), over_lane, second);
    }
    lane = _mm_xor_si128(_mm_srli_si128(lane, 8), _mm_clmulepi64_si128(lane, over_lane, 0x10));
    __m128i half = _mm_clmulepi64_si128(_mm_and_si128(lane, lower), over_half, 0x00);
    lane = _mm_xor_si128(half, _mm_srli_si128(lane, 4));
    __m128i times = _mm_clmulepi64_si128(_mm_and_si128(lane, lower), division, 0x10);
    __m128i rest = _mm_clmulepi64_si128(_mm_and_si128(times, lower), division, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(lane, rest), 1);
}

#endif

/* The checksum of bytes after what has the checksum `before`, 0 for nothing. */
static long crc32(const byte *bytes, long size, long before) {
    uint32_t crc = (uint32_t)before ^ 0xFFFFFFFF;
#ifdef __x86_64__
    if (size >= LANE && lanes_at_once)
        return fold(crc, bytes, size) ^ 0xFFFFFFFF;
#endif
    return by_words(crc, bytes, size) ^ 0xFFFFFFFF;
}
