/* Attention of one path: each hole's rows over its own keys and values. Included after vectors.h. */

/* Where the keys of a head are in each slab. Its values come after them. */
INLINE size_t NAME(place_of)(const Network *network, size_t layer, size_t head) {
    return (layer * network->heads + head) * 2 * BLOCK * network->head_width;
}

/* Normalize and rotate one head of a query or key, in place, times `gain`. */
INLINE void NAME(rotate)(const Network *network, float *restrict head, size_t position, float gain) {
    size_t half = network->head_width / 2;
    const float *restrict cosine = network->cosine + position * half, *restrict sine = network->sine + position * half;
    gain *= NAME(norm_factor)(head, 2 * half, 2 * half);
    for (size_t at = 0; at < half; at++) {
        float first = head[at] * gain, second = head[half + at] * gain;
        head[at] = first * cosine[at] - second * sine[at];
        head[half + at] = second * cosine[at] + first * sine[at];
    }
}

/* Rotate queries and keys of a hole, and write its keys and values. */
FUNCTION void NAME(write_keys)(const Network *network, const Batch *batch, const Hole *hole, size_t layer, float *qkv) {
    size_t width = network->width, head_width = network->head_width, stride = padded(3 * width);
    for (size_t row = 0; row < hole->rows; row++) {
        size_t at = hole->start + row, place = at % BLOCK;
        size_t position = (size_t)batch->numbers[batch->rows + hole->first + row];
        float *own = qkv + (hole->first + row) * stride;
        for (size_t head = 0; head < network->heads; head++) {
            float *query = own + head * head_width, *key = query + width, *value = key + width;
            NAME(rotate)(network, query, position, 1.0f / sqrtf((float)head_width));
            NAME(rotate)(network, key, position, 1.0f);
            uint16_t *keys = hole->slabs[at / BLOCK] + NAME(place_of)(network, layer, head);
            uint16_t *values = keys + BLOCK * head_width + place * head_width, narrow[LANES];
            for (size_t d = 0; d < head_width; d += LANES) {
                NAME(store_half)(narrow, NAME(load)(key + d));
                for (size_t lane = 0; lane < LANES; lane++) keys[(d + lane) * BLOCK + place] = narrow[lane];
                NAME(store_half)(values + d, NAME(load)(value + d));
            }
        }
    }
}

/* Write the scores of `rows` queries for `vectors` vectors of keys. Both are constants where this is inlined. */
INLINE void NAME(score)(const float *query, size_t stride, const uint16_t *keys, size_t head_width, float *scores,
                        size_t length, const int rows, const int vectors) {
    floats sums[HEAD_ROWS][4] = {0};
    for (size_t d = 0; d < head_width; d++) {
        floats column[4];
#pragma GCC unroll 4
        for (int vector = 0; vector < vectors; vector++)
            column[vector] = NAME(load_half)(keys + d * BLOCK + vector * LANES);
#pragma GCC unroll 6
        for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
            for (int vector = 0; vector < vectors; vector++)
                sums[row][vector] = MULTIPLY_ADD(NAME(all)(query[row * stride + d]), column[vector], sums[row][vector]);
    }
#pragma GCC unroll 6
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
        for (int vector = 0; vector < vectors; vector++)
            NAME(store)(scores + row * length + vector * LANES, sums[row][vector]);
}

/* Turn a row's scores [length] into shares, of which those from `seen` on are 0. Return one by their sum. */
INLINE float NAME(shares)(float *scores, size_t seen, size_t length) {
    for (size_t at = seen; at < length; at++) scores[at] = -1e30f;
    floats largest = NAME(all)(-1e30f), sum = NAME(all)(0);
    for (size_t at = 0; at < length; at += LANES) largest = NAME(maximum)(largest, NAME(load)(scores + at));
    floats most = NAME(all)(NAME(largest_of)(largest));
    for (size_t at = 0; at < length; at += LANES) {
        floats share = NAME(power)(NAME(load)(scores + at) - most);
        sum += share;
        NAME(store)(scores + at, share);
    }
    return 1.0f / NAME(sum_of)(sum);
}

/* Mix `vectors` vectors of the values from `d` on, for `rows` rows. */
INLINE void NAME(mix)(const Hole *hole, size_t place, size_t head_width, size_t d, const float *shares, size_t length,
                      size_t keys, const float *factors, float *mixed, size_t stride, const int rows,
                      const int vectors) {
    floats sums[HEAD_ROWS][4] = {0};
    for (size_t first = 0; first < keys; first += BLOCK) {
        const uint16_t *values = hole->slabs[first / BLOCK] + place + d;
        size_t count = keys - first < BLOCK ? keys - first : BLOCK;
        for (size_t key = 0; key < count; key++) {
            floats column[4];
#pragma GCC unroll 4
            for (int vector = 0; vector < vectors; vector++)
                column[vector] = NAME(load_half)(values + key * head_width + vector * LANES);
#pragma GCC unroll 6
            for (int row = 0; row < rows; row++) {
                floats share = NAME(all)(shares[row * length + first + key]);
#pragma GCC unroll 4
                for (int vector = 0; vector < vectors; vector++)
                    sums[row][vector] = MULTIPLY_ADD(share, column[vector], sums[row][vector]);
            }
        }
    }
#pragma GCC unroll 6
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
        for (int vector = 0; vector < vectors; vector++)
            NAME(store)(mixed + row * stride + d + vector * LANES, sums[row][vector] * factors[row]);
}

/* Mix the values of one head for `rows` rows (1 to HEAD_ROWS) from row `first` of the hole. */
INLINE void NAME(attend_rows)(const Network *network, const Hole *hole, size_t layer, size_t head, size_t first,
                              const Scratch *scratch, const int rows, const int vectors) {
    size_t head_width = network->head_width, stride = padded(network->width), row = hole->first + first;
    size_t keys = hole->start + (first + rows <= hole->append ? first + rows : hole->rows), length = padded(keys);
    const float *query = scratch->qkv + row * padded(3 * network->width) + head * head_width;
    float factors[HEAD_ROWS], *mixed = scratch->mixed + row * stride + head * head_width;
    size_t place = NAME(place_of)(network, layer, head), values = place + BLOCK * head_width, d = 0;
    for (size_t at = 0; at < length; at += vectors * LANES)
        NAME(score)(query, padded(3 * network->width), hole->slabs[at / BLOCK] + place + at % BLOCK, head_width,
                    scratch->scores + at, length, rows, vectors);
    for (int one = 0; one < rows; one++) {
        size_t own = first + one, seen = hole->start + (own < hole->append ? own + 1 : hole->rows);
        factors[one] = NAME(shares)(scratch->scores + one * length, seen, length);
    }
    for (; d + vectors * LANES <= head_width; d += vectors * LANES)
        NAME(mix)(hole, values, head_width, d, scratch->scores, length, keys, factors, mixed, stride, rows, vectors);
    for (; d < head_width; d += LANES)
        NAME(mix)(hole, values, head_width, d, scratch->scores, length, keys, factors, mixed, stride, rows, 1);
}

#define ROWS(rows, vectors)                                                         \
    case rows:                                                                      \
        NAME(attend_rows)(network, hole, layer, head, row, scratch, rows, vectors); \
        break

/* A row's sums run over its keys in order. A key that it does not see adds 0, so other rows change nothing. */
FUNCTION void NAME(attend)(const Network *network, const Hole *hole, size_t layer, const Scratch *scratch) {
    for (size_t head = 0; head < network->heads; head++)
        for (size_t row = 0, count; row < hole->rows; row += count) {
            size_t left = hole->rows - row, tiles = (left + HEAD_ROWS - 1) / HEAD_ROWS;
            count = (left + tiles - 1) / tiles;
            switch (count) {
                ROWS(1, 4);
                ROWS(2, 4);
                ROWS(3, HEAD_VECTORS);
                ROWS(4, HEAD_VECTORS);
#if HEAD_ROWS > 4
                ROWS(5, HEAD_VECTORS);
                ROWS(6, HEAD_VECTORS);
#endif
            }
        }
}
