/* A consumer that does nothing with packets, or with records of TLS, but skip them: see consumer.py. */
#include "kernels.h"

enum { LEFT, HELD, LENGTH, EVENTS, ENDED }; /* the state of a walk; HELD and LENGTH are of a header that was cut */
#define RECORD_REST 17                      /* bytes of a TLS 1.3 record that are no data: a type, and what proves it */

/* Where the next header begins or continues: behind what is left of a packet or record, as far as it is here. */
static int64_t skip_rest(int64_t offset, int64_t size, int64_t *state) {
    int64_t step = min64(state[LEFT], size - offset);
    state[LEFT] -= step;
    return offset + step;
}

void walk(const uint8_t *data, int64_t size, int64_t *state) {
    int64_t offset = skip_rest(0, size, state);
    while (offset < size) {
        if (state[HELD] < 4) {
            if (state[HELD] < 3)
                state[LENGTH] |= (int64_t)data[offset] << (8 * state[HELD]);
            state[HELD]++;
            offset++;
            continue;
        }
        if (data[offset] == 0xFE && state[LENGTH] < 9)
            state[ENDED] = 1;
        else if (data[offset] == 0xFF)
            state[ENDED] = 2;
        state[LEFT] = state[LENGTH];
        state[HELD] = state[LENGTH] = 0;
        state[EVENTS]++;
        offset = skip_rest(offset, size, state);
    }
}

void walk_records(const uint8_t *data, int64_t size, int64_t *state) {
    int64_t offset = skip_rest(0, size, state);
    while (offset < size) {
        if (state[HELD] >= 3)
            state[LENGTH] |= (int64_t)data[offset] << (8 * (4 - state[HELD]));
        state[HELD]++;
        offset++;
        if (state[HELD] == 5) {
            state[LEFT] = state[LENGTH];
            state[EVENTS] -= state[LENGTH] - RECORD_REST;
            state[HELD] = state[LENGTH] = 0;
            offset = skip_rest(offset, size, state);
        }
    }
    if (state[EVENTS] <= 0)
        state[ENDED] = 1;
}
