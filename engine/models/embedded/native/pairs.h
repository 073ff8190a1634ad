/* Products of one path with sums of pairs of int16. Included by products.h. */

/* Write LANES whole numbers from input `at` on. */
INLINE void NAME(put)(int16_t *quantized, size_t at, ints whole) {
    shorts narrow = __builtin_convertvector(whole, shorts);
    memcpy(quantized + at, &narrow, sizeof narrow);
}

/* Compute `rows` rows (1 to TILE_ROWS) of `vectors` vectors of outputs. Both are constants where this is inlined. */
INLINE void NAME(tile)(const NAME(Product) *product, size_t row, size_t output, const int rows, const int vectors) {
    size_t inputs = padded(product->matrix->inputs);
    const int8_t *weights = product->matrix->weights + output / BLOCK * BLOCK * inputs + output % BLOCK * 2;
    const int16_t *quantized = product->quantized + row * inputs;
    ints sums[TILE_ROWS][8] = {0};
#pragma GCC unroll 4
    for (size_t pair = 0; pair < inputs / 2; pair++) {
        ints column[8];
#pragma GCC unroll 8
        for (int vector = 0; vector < vectors; vector++)
            column[vector] = LOAD_WEIGHTS(weights + pair * BLOCK * 2 + vector * LANES * 2);
#pragma GCC unroll 6
        for (int one = 0; one < rows; one++) {
            int32_t numbers;
            memcpy(&numbers, quantized + one * inputs + pair * 2, sizeof numbers);
            ints both = ALL_PAIRS(numbers);
#pragma GCC unroll 8
            for (int vector = 0; vector < vectors; vector++)
                sums[one][vector] = ADD_PAIRS(sums[one][vector], column[vector], both);
        }
    }
#pragma GCC unroll 6
    for (int one = 0; one < rows; one++)
#pragma GCC unroll 8
        for (int vector = 0; vector < vectors; vector++)
            NAME(finish)(product, row + one, output + vector * LANES, sums[one][vector]);
}
