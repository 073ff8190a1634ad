/* Attention of one path: each hole's rows over its own keys and values. Included after vectors.h. */

/* Where the keys of a key head are in each slab. Its values come after them. */
INLINE size_t NAME(place_of)(const Network *network, size_t layer, size_t head) {
    return (layer * network->key_heads + head) * 2 * BLOCK * network->head_width;
}

/* Rotate one head of a query or key, in place, times `gain`. */
INLINE void NAME(rotate)(const Network *network, float *restrict head, size_t position, float gain) {
    size_t half = network->head_width / 2;
    const float *restrict cosine = network->cosine + position * half, *restrict sine = network->sine + position * half;
    for (size_t at = 0; at < half; at++) {
        float first = head[at] * gain, second = head[half + at] * gain;
        head[at] = first * cosine[at] - second * sine[at];
        head[half + at] = second * cosine[at] + first * sine[at];
    }
}

/* Add a bias to what has `size` numbers. */
INLINE void NAME(add_bias)(float *row, const float *bias, size_t size) {
    for (size_t at = 0; at < size; at += LANES) NAME(store)(row + at, NAME(load)(row + at) + NAME(load)(bias + at));
}

/* Normalize each of some heads, in place. */
FUNCTION void NAME(norm_heads)(const Network *network, float *head, size_t heads, const float *gains) {
    size_t width = network->head_width;
    for (size_t one = 0; one < heads; one++, head += width) {
        floats factor = NAME(all)(NAME(norm_factor)(head, width, network->epsilon));
        for (size_t at = 0; at < width; at += LANES)
            NAME(store)(head + at, NAME(load)(head + at) * factor * NAME(load)(gains + at));
    }
}

/* Rotate the queries and keys of one row of a hole, and write its keys and values. */
FUNCTION void NAME(write_row)(const Network *network, const Batch *batch, const Hole *hole, size_t layer, size_t row,
                              float *own) {
    size_t head_width = network->head_width, at = hole->start + row - hole->first, place = at % BLOCK;
    size_t position = (size_t)batch->numbers[batch->rows + row];
    float *key = own + mixed_width(network), *value = key + network->key_heads * head_width;
    const Layer *weights = &network->layer[layer];
    if (weights->bias) NAME(add_bias)(own, weights->bias, qkv_width(network));
    if (weights->query_norm) NAME(norm_heads)(network, own, network->heads, weights->query_norm);
    if (weights->key_norm) NAME(norm_heads)(network, key, network->key_heads, weights->key_norm);
    for (size_t head = 0; head < network->heads; head++)
        NAME(rotate)(network, own + head * head_width, position, 1.0f / sqrtf((float)head_width));
    for (size_t head = 0; head < network->key_heads; head++, key += head_width, value += head_width) {
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

/* Write the scores of `rows` queries for `vectors` vectors of keys. Both are constants where this is inlined. */
INLINE void NAME(score)(const float *const *query, const uint16_t *keys, size_t head_width, float *scores,
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
                sums[row][vector] = MULTIPLY_ADD(NAME(all)(query[row][d]), column[vector], sums[row][vector]);
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
                      size_t keys, const float *factors, float *const *mixed, const int rows, const int vectors) {
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
            NAME(store)(mixed[row] + d + vector * LANES, sums[row][vector] * factors[row]);
}

/* Mix the values of a key head for `rows` queries (1 to HEAD_ROWS) from query `first` on. The heads that share the key
   head are the queries of one row, so query i is of row i / shared of the hole. */
INLINE void NAME(attend_queries)(const Network *network, const Hole *hole, size_t layer, size_t head, size_t first,
                                 const Scratch *scratch, size_t thread, const int rows, const int vectors) {
    size_t head_width = network->head_width, shared = network->heads / network->key_heads;
    size_t seen[HEAD_ROWS], keys = 0, place = NAME(place_of)(network, layer, head), d = 0;
    float factors[HEAD_ROWS], *mixed[HEAD_ROWS], *scores = scratch->scores + thread * MOST_TILE * scratch->positions;
    const float *query[HEAD_ROWS];
    for (int one = 0; one < rows; one++) {
        size_t own = (first + one) / shared, column = (head * shared + (first + one) % shared) * head_width;
        query[one] = scratch->wide + (hole->first + own) * padded(qkv_width(network)) + column;
        mixed[one] = scratch->mixed + (hole->first + own) * mixed_width(network) + column;
        seen[one] = hole->start + (own < hole->append ? own + 1 : hole->rows);
        keys = larger(keys, seen[one]);
    }
    size_t length = padded(keys), values = place + BLOCK * head_width;
    for (size_t at = 0; at < length; at += vectors * LANES)
        NAME(score)(query, hole->slabs[at / BLOCK] + place + at % BLOCK, head_width, scores + at, length, rows, vectors);
    for (int one = 0; one < rows; one++) factors[one] = NAME(shares)(scores + one * length, seen[one], length);
    for (; d + vectors * LANES <= head_width; d += vectors * LANES)
        NAME(mix)(hole, values, head_width, d, scores, length, keys, factors, mixed, rows, vectors);
    for (; d < head_width; d += LANES)
        NAME(mix)(hole, values, head_width, d, scores, length, keys, factors, mixed, rows, 1);
}

#define ROWS(rows, vectors)                                                                     \
    case rows:                                                                                  \
        NAME(attend_queries)(network, hole, layer, head, at, scratch, thread, rows, vectors); \
        break

/* Attend for the rows `row` to `end` of a hole with one key head. A query's sums run over its keys in order. A key that
   it does not see adds 0, so other rows change nothing. */
FUNCTION void NAME(attend)(const Network *network, const Hole *hole, size_t layer, size_t head, size_t row, size_t end,
                           const Scratch *scratch, size_t thread) {
    size_t shared = network->heads / network->key_heads;
    for (size_t at = row * shared, count; at < end * shared; at += count) {
        size_t left = end * shared - at, tiles = (left + HEAD_ROWS - 1) / HEAD_ROWS;
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
