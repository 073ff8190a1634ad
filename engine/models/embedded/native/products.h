/* Matrix products of one path: rows in int8 times weights in int4 or int8. Included after vectors.h.

   Sums of a group are whole numbers, exact in int32. Groups are added in fp32, in their order. So what a row gives
   depends on that row alone. */

/* Quantize a row [inputs], which counts `gain` times, and each input `gains` times unless that is NULL. */
FUNCTION void NAME(quantize)(const float *row, const float *gains, float gain, size_t inputs, float *scales,
                             int32_t *sums, int8_t *quantized) {
    for (size_t group = 0; group < inputs / GROUP; group++) {
        const float *from = row + group * GROUP;
        floats values[GROUP / LANES], largest = NAME(all)(0);
#pragma GCC unroll 16
        for (size_t at = 0; at < GROUP / LANES; at++) {
            values[at] = NAME(load)(from + at * LANES) * gain;
            if (gains) values[at] *= NAME(load)(gains + group * GROUP + at * LANES);
            largest = NAME(maximum)(largest, NAME(absolute)(values[at]));
        }
        float most = NAME(largest_of)(largest);
        if (!(most > 1e-30f)) most = 1e-30f;
        float factor = 127.0f / most;
        ints sum = {0};
#pragma GCC unroll 16
        for (size_t at = 0; at < GROUP / LANES; at++) {
            ints whole = NAME(rounded)(values[at] * factor);
            sum += whole;
            narrows narrow = __builtin_convertvector(whole, narrows);
            memcpy(quantized + group * GROUP + at * LANES, &narrow, sizeof narrow);
        }
        int32_t lanes[LANES], total = 0;
        memcpy(lanes, &sum, sizeof lanes);
        for (size_t lane = 0; lane < LANES; lane++) total += lanes[lane];
        scales[group] = most / 127.0f;
        sums[group] = total;
    }
}

typedef struct {
    const Matrix *matrix;
    const Scratch *scratch;
    size_t rows, stride;
    float *result; /* [rows, stride] */
    int add;       /* to what is in `result` */
} NAME(Product);

/* Compute `rows` rows of `vectors` vectors of outputs from `output` on; rows, vectors and bits are constants where this
   is inlined. */
INLINE void NAME(tile)(const NAME(Product) *product, size_t row, size_t output, const int rows, const int vectors,
                       const int bits) {
    const Matrix *matrix = product->matrix;
    size_t inputs = matrix->inputs, groups = matrix->groups, steps = inputs * (size_t)bits / 32;
    const uint32_t *words = matrix->words + output / OUTPUTS * OUTPUTS * steps + output % OUTPUTS;
    const uint16_t *scales = matrix->scales + output / OUTPUTS * OUTPUTS * groups + output % OUTPUTS;
    const int8_t *quantized = product->scratch->quantized + row * inputs;
    const float *row_scales = product->scratch->row_scales + row * groups;
    const int32_t *row_sums = product->scratch->row_sums + row * groups;
    floats totals[6][4] = {0};
    for (size_t group = 0; group < groups; group++) {
        ints sums[6][4];
#pragma GCC unroll 6
        for (int one = 0; one < rows; one++)
#pragma GCC unroll 4
            for (int vector = 0; vector < vectors; vector++)
                sums[one][vector] = (ints){0} - row_sums[one * groups + group] * (bits == 4 ? 8 : 128);
        const int8_t *own = quantized + group * GROUP;
#pragma GCC unroll 2
        for (int step = 0; step < GROUP * bits / 32; step++) {
            ints low[4], high[4];
#pragma GCC unroll 4
            for (int vector = 0; vector < vectors; vector++) {
                size_t place = (size_t)(vector * LANES / OUTPUTS) * OUTPUTS * steps + vector * LANES % OUTPUTS;
                ints word = NAME(load_words)(words + place + (group * GROUP * bits / 32 + step) * OUTPUTS);
                low[vector] = bits == 4 ? word & 0x0f0f0f0f : word;
                high[vector] = (ints)((unsigneds)word >> 4) & 0x0f0f0f0f;
            }
#pragma GCC unroll 6
            for (int one = 0; one < rows; one++) {
                int32_t numbers[2];
                memcpy(numbers, own + one * inputs + step * (bits == 4 ? 8 : 4), bits == 4 ? 8 : 4);
                ints first = NAME(all_words)(numbers[0]), second = first;
                if (bits == 4) second = NAME(all_words)(numbers[1]);
#pragma GCC unroll 4
                for (int vector = 0; vector < vectors; vector++)
                    if (bits == 4) sums[one][vector] = DOT4(sums[one][vector], low[vector], first, high[vector], second);
                    else sums[one][vector] = DOT8(sums[one][vector], low[vector], first);
            }
        }
#pragma GCC unroll 4
        for (int vector = 0; vector < vectors; vector++) {
            size_t place = (size_t)(vector * LANES / OUTPUTS) * OUTPUTS * groups + vector * LANES % OUTPUTS;
            floats scale = NAME(load_half)(scales + place + group * OUTPUTS);
#pragma GCC unroll 6
            for (int one = 0; one < rows; one++) {
                floats sum = __builtin_convertvector(sums[one][vector], floats);
                totals[one][vector] = MULTIPLY_ADD(sum * row_scales[one * groups + group], scale, totals[one][vector]);
            }
        }
    }
#pragma GCC unroll 6
    for (int one = 0; one < rows; one++)
#pragma GCC unroll 4
        for (int vector = 0; vector < vectors; vector++) {
            float *to = product->result + (row + one) * product->stride + output + vector * LANES;
            floats total = totals[one][vector];
            NAME(store)(to, product->add ? NAME(load)(to) + total : total);
        }
}

#define TILES(rows, vectors)                                                           \
    case rows:                                                                         \
        for (size_t next = 0; next < CHUNK; next += (vectors) * LANES)                 \
            if (product->matrix->bits == 4) NAME(tile)(product, row, output + next, rows, vectors, 4); \
            else NAME(tile)(product, row, output + next, rows, vectors, 8);            \
        break

/* One item of a product: CHUNK outputs of all rows. A matrix has a whole number of chunks, or is padded to it. */
FUNCTION void NAME(multiply)(void *context, size_t item, size_t thread) {
    const NAME(Product) *product = context;
    size_t output = item * CHUNK, rows = product->rows;
    (void)thread;
    for (size_t row = 0, count; row < rows; row += count) {
        size_t left = rows - row, tiles = (left + TILE_ROWS - 1) / TILE_ROWS;
        count = (left + tiles - 1) / tiles; /* tiles of even sizes: few rows leave registers unused */
        switch (count) {
            TILES(1, ROW_VECTORS);
            TILES(2, TILE_PAIR);
            TILES(3, TILE_VECTORS);
            TILES(4, TILE_VECTORS);
#if TILE_ROWS > 4
            TILES(5, TILE_VECTORS);
            TILES(6, TILE_VECTORS);
#endif
        }
    }
}
