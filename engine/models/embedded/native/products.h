/* Matrix products of one path: rows of int8 times weights of 4 or 8 bits. Included after vectors.h.

   The sum over a group of 64 inputs is a whole number, exact in int32. Sums of groups are added in fp32, in order, each
   times the scale of the weights and the scale of the row. So a row's result depends on that row alone. */

/* Rows as products take them: numbers int8 [rows, inputs]; for each group of a row its scale and the sum of its numbers,
   [rows, inputs / 64]. Weights that have a number added to them are corrected by that sum. Where weights have offsets,
   the sums of the halves of each group are there too, times its scale: [rows, inputs / 32]. */
typedef struct {
    const Matrix *matrix;
    const int8_t *quantized;
    const float *scales;
    const int32_t *sums;
    const float *half_sums;
    float *result; /* [rows, padded outputs] */
    size_t rows, chunk;
    int add; /* to what `result` has */
} NAME(Product);

/* Quantize a row, normalized by `factor` and with the gains of its norm [inputs], or as it is if they are NULL. */
INLINE void NAME(quantize)(const float *row, size_t inputs, float factor, const float *gains, int8_t *quantized,
                           float *scales, int32_t *sums, float *half_sums) {
    for (size_t group = 0; group < inputs / GROUP; group++, row += GROUP, quantized += GROUP) {
        floats value[GROUP / LANES], largest = NAME(all)(1e-30f);
#pragma GCC unroll 16
        for (int vector = 0; vector < GROUP / LANES; vector++) {
            value[vector] = NAME(load)(row + vector * LANES);
            if (gains) value[vector] = value[vector] * factor * NAME(load)(gains + group * GROUP + vector * LANES);
            largest = NAME(maximum)(largest, NAME(absolute)(value[vector]));
        }
        float most = NAME(largest_of)(largest), finer = 127.0f / most;
        bits sum = {0}, first = {0};
#pragma GCC unroll 16
        for (int vector = 0; vector < GROUP / LANES; vector++) {
            ints whole = NAME(rounded)(value[vector] * finer);
            sum += (bits)whole;
            if (vector == HALF / LANES - 1) first = sum;
            NARROW(quantized + vector * LANES, whole);
        }
        scales[group] = most * (1.0f / 127.0f);
        sums[group] = NAME(whole_sum_of)((ints)sum);
        if (half_sums) {
            int32_t of_first = NAME(whole_sum_of)((ints)first);
            half_sums[2 * group] = (float)of_first * scales[group];
            half_sums[2 * group + 1] = (float)(sums[group] - of_first) * scales[group];
        }
    }
}

INLINE bits NAME(load_words)(const uint8_t *from) {
    bits value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Four numbers of a row, for each lane. */
INLINE ints NAME(four)(const int8_t *from) {
    int32_t numbers;
    memcpy(&numbers, from, sizeof numbers);
    return numbers - (ints){0};
}

/* Add the products of a group's inputs `from` to `end`. `first`: these are the first vectors of a block. A word of 4 bits gives its inputs in two halves, one after the
   other: both at once would leave too few registers for sums. */
INLINE void NAME(add_inputs)(ints sums[TILE_ROWS][MOST_VECTORS], const uint8_t *words, const int8_t *quantized,
                             size_t inputs, int from, int end, int first, const int rows, const int vectors,
                             const int width) {
    (void)first;
    for (int at = from; at < end; at += 32 / width) {
#if LANES < 16
        /* The first vectors of a block read every other line, which the processor does not foresee. */
        for (int line = 0; first && line < 4; line++)
            __builtin_prefetch(words + at * width / 32 * BLOCK * 4 + line * 64 + 2 * piece_bytes(width));
#endif
#pragma GCC unroll 2
        for (int half = 0; half < 8 / width; half++) {
            ints column[MOST_VECTORS];
            /* Otherwise gcc loads early what comes later, and puts sums into memory for it. */
            __asm__ volatile("" ::: "memory");
#pragma GCC unroll 8
            for (int vector = 0; vector < vectors; vector++) {
                bits word = NAME(load_words)(words + at * width / 32 * BLOCK * 4 + vector * LANES * 4);
                if (width == 4) word = word >> 4 * half & 0x0f0f0f0fu;
                else if (ADDED_TO_8) word ^= 0x80808080u;
                column[vector] = (ints)word;
            }
#pragma GCC unroll 6
            for (int one = 0; one < rows; one++) {
                ints numbers = NAME(four)(quantized + (size_t)one * inputs + at + 4 * half);
#pragma GCC unroll 8
                for (int vector = 0; vector < vectors; vector++)
                    sums[one][vector] = width == 4 ? ADD_SMALL(sums[one][vector], column[vector], numbers)
                                                   : ADD_DOT(sums[one][vector], column[vector], numbers);
            }
        }
    }
}

/* The tile that reads a block first asks for the group after the next one: weights that no cache holds come a third sooner. */
INLINE void NAME(prefetch)(const uint8_t *piece, size_t row, size_t output, const int width) {
#if LANES == 16
    if (row || output % BLOCK) return;
    for (size_t at = 0; at < piece_bytes(width); at += 64) __builtin_prefetch(piece + 2 * piece_bytes(width) + at);
#else
    (void)piece, (void)row, (void)output, (void)width;
#endif
}

INLINE void NAME(store_tile)(const NAME(Product) *product, size_t row, size_t output, size_t stride,
                             floats values[TILE_ROWS][MOST_VECTORS], const int rows, const int vectors) {
#pragma GCC unroll 6
    for (int one = 0; one < rows; one++)
#pragma GCC unroll 8
        for (int vector = 0; vector < vectors; vector++) {
            float *to = product->result + (row + one) * stride + output + vector * LANES;
            NAME(store)(to, product->add ? values[one][vector] + NAME(load)(to) : values[one][vector]);
        }
}

/* Compute `rows` rows (1 to TILE_ROWS) of `vectors` vectors of outputs, with weights of int8. The last two are constants
   where this is inlined. */
INLINE void NAME(tile_of_8)(const NAME(Product) *product, size_t row, size_t output, const int rows,
                            const int vectors) {
    size_t inputs = product->matrix->inputs, groups = inputs / GROUP, stride = padded(product->matrix->outputs);
    const uint8_t *piece = product->matrix->blocks + output / BLOCK * groups * piece_bytes(8);
    const int8_t *quantized = product->quantized + row * inputs;
    const int32_t *row_sums = product->sums + row * groups;
    const float *row_scales = product->scales + row * groups;
    floats values[TILE_ROWS][MOST_VECTORS];
#pragma GCC unroll 6
    for (int one = 0; one < rows; one++)
#pragma GCC unroll 8
        for (int vector = 0; vector < vectors; vector++) values[one][vector] = NAME(all)(0);
    /* They stay in memory, so that the registers are for the sums of a group. */
    __asm__ volatile("" : : "r"(values) : "memory");
    for (size_t group = 0; group < groups; group++, piece += piece_bytes(8)) {
        NAME(prefetch)(piece, row, output, 8);
        const uint16_t *scales = (const uint16_t *)piece + output % BLOCK;
        const uint8_t *words = piece + scale_bytes(8) + output % BLOCK * 4;
        ints sums[TILE_ROWS][MOST_VECTORS];
#pragma GCC unroll 6
        for (int one = 0; one < rows; one++) {
            uint32_t start = 0u - (uint32_t)ADDED_TO_8 * (uint32_t)row_sums[(size_t)one * groups + group];
#pragma GCC unroll 8
            for (int vector = 0; vector < vectors; vector++) sums[one][vector] = (ints)(start + (bits){0});
        }
        NAME(add_inputs)(sums, words, quantized + group * GROUP, inputs, 0, GROUP, output % BLOCK == 0, rows, vectors,
                         8);
#pragma GCC unroll 8
        for (int vector = 0; vector < vectors; vector++) {
            floats scale = NAME(load_half)(scales + vector * LANES);
#pragma GCC unroll 6
            for (int one = 0; one < rows; one++)
                values[one][vector] = MULTIPLY_ADD(__builtin_convertvector(sums[one][vector], floats) * scale,
                                                   NAME(all)(row_scales[one * groups + group]), values[one][vector]);
        }
    }
    NAME(store_tile)(product, row, output, stride, values, rows, vectors);
}

/* The same for weights of 4 bits: each half of a group is summed by itself. */
INLINE void NAME(tile_of_4)(const NAME(Product) *product, size_t row, size_t output, const int rows,
                            const int vectors) {
    size_t inputs = product->matrix->inputs, groups = inputs / GROUP, stride = padded(product->matrix->outputs);
    const uint8_t *piece = product->matrix->blocks + output / BLOCK * groups * piece_bytes(4);
    const int8_t *quantized = product->quantized + row * inputs;
    const float *row_scales = product->scales + row * groups, *half_sums = product->half_sums + row * groups * 2;
    floats values[TILE_ROWS][MOST_VECTORS];
#pragma GCC unroll 6
    for (int one = 0; one < rows; one++)
#pragma GCC unroll 8
        for (int vector = 0; vector < vectors; vector++) values[one][vector] = NAME(all)(0);
    __asm__ volatile("" : : "r"(values) : "memory"); /* as in `tile_of_8` */
    for (size_t group = 0; group < groups; group++, piece += piece_bytes(4)) {
        NAME(prefetch)(piece, row, output, 4);
        const uint8_t *words = piece + scale_bytes(4) + output % BLOCK * 4;
        for (int half = 0; half < 2; half++) {
            const uint16_t *scales = (const uint16_t *)piece + half * BLOCK + output % BLOCK;
            ints sums[TILE_ROWS][MOST_VECTORS];
#pragma GCC unroll 6
            for (int one = 0; one < rows; one++)
#pragma GCC unroll 8
                for (int vector = 0; vector < vectors; vector++) sums[one][vector] = (ints){0};
            NAME(add_inputs)(sums, words, quantized + group * GROUP, inputs, half * HALF, half * HALF + HALF,
                             output % BLOCK == 0, rows, vectors, 4);
#pragma GCC unroll 8
            for (int vector = 0; vector < vectors; vector++) {
                floats scale = NAME(load_half)(scales + vector * LANES);
                floats offset = NAME(load_half)(scales + 2 * BLOCK + vector * LANES);
#pragma GCC unroll 6
                for (int one = 0; one < rows; one++) {
#ifdef WIDEN
                    ints whole = WIDEN(sums[one][vector]);
#else
                    ints whole = sums[one][vector];
#endif
                    size_t at = one * groups + group;
                    floats value = MULTIPLY_ADD(offset, NAME(all)(half_sums[2 * at + half]), values[one][vector]);
                    values[one][vector] = MULTIPLY_ADD(__builtin_convertvector(whole, floats) * scale,
                                                       NAME(all)(row_scales[at]), value);
                }
            }
        }
    }
    NAME(store_tile)(product, row, output, stride, values, rows, vectors);
}

#define TILES(rows, vectors, width)                                                                      \
    case rows:                                                                                           \
        for (size_t next = 0; next < BLOCK; next += (vectors) * LANES)                                   \
            if ((width) == 4) NAME(tile_of_4)(product, row, output + next, rows, vectors);                   \
            else NAME(tile_of_8)(product, row, output + next, rows, vectors);                                \
        break

#if TILE_ROWS > 4
#define MORE_TILES(width)        \
    TILES(5, TILE_VECTORS, width); \
    TILES(6, TILE_VECTORS, width);
#else
#define MORE_TILES(width)
#endif

#define MULTIPLY(name, width)                                                                              \
    FUNCTION void NAME(name)(const NAME(Product) *product, size_t output, size_t row, size_t end) {        \
        for (size_t count; row < end; row += count) {                                                      \
            size_t left = end - row, tiles = (left + TILE_ROWS - 1) / TILE_ROWS;                           \
            count = (left + tiles - 1) / tiles; /* tiles of even sizes: few rows leave registers unused */ \
            switch (count) {                                                                               \
                TILES(1, ROW_VECTORS, width);                                                              \
                TILES(2, TILE_VECTORS, width);                                                             \
                TILES(3, TILE_VECTORS, width);                                                             \
                TILES(4, TILE_VECTORS, width);                                                             \
                MORE_TILES(width)                                                                          \
            }                                                                                              \
        }                                                                                                  \
    }

MULTIPLY(multiply_4_bits, 4)
MULTIPLY(multiply_8_bits, 8)

/* A task is a block of outputs of a chunk of rows. */
FUNCTION void NAME(product_task)(void *argument, size_t task, size_t thread) {
    const NAME(Product) *product = argument;
    size_t blocks = padded(product->matrix->outputs) / BLOCK, row = task / blocks * product->chunk;
    size_t end = row + product->chunk < product->rows ? row + product->chunk : product->rows;
    (void)thread;
    size_t output = task % blocks * BLOCK;
    if (product->matrix->weight_bits == 4) NAME(multiply_4_bits)(product, output, row, end);
    else NAME(multiply_8_bits)(product, output, row, end);
}
