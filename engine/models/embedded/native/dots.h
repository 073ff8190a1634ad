/* Products of one path with the dot products of int8 that NEON has. Included by products.h.

   A whole number of at most 15 bits is 256 * high + low, both int8. So a row's sum is 256 times its sum over the high
   bytes plus that over the low bytes: the same whole number as a path of int16 computes. A row is stored as 8 low bytes,
   their 8 high bytes, and so on: one vector for 8 inputs. */

/* Write LANES (4) whole numbers from input `at` on. */
INLINE void NAME(put)(int16_t *quantized, size_t at, ints whole) {
    int16x4_t narrow = vmovn_s32((int32x4_t)whole);
    int16x8_t twice = vcombine_s16(narrow, narrow);
    int8_t *to = (int8_t *)quantized + at / 8 * 16 + at % 8;
    int8x8_t low = vmovn_s16(twice), high = vshrn_n_s16(vaddq_s16(twice, vdupq_n_s16(128)), 8);
    memcpy(to, &low, LANES);
    memcpy(to + 8, &high, LANES);
}

INLINE ints NAME(joined)(int32x4_t low, int32x4_t high) { return (ints)((bits)low + ((bits)high << 8)); }

#if TOGETHER == 4
#define GROUP(group)                                                                                  \
    _Pragma("GCC unroll 8") for (int vector = 0; vector < vectors; vector++) {                        \
        int8x16_t column = vld1q_s8(weights + (at / 4 + group) * BLOCK * 4 + vector * 16);            \
        _Pragma("GCC unroll 4") for (int one = 0; one < rows; one++) {                                \
            low[one][vector] = vdotq_laneq_s32(low[one][vector], column, split[one], group);          \
            high[one][vector] = vdotq_laneq_s32(high[one][vector], column, split[one], 2 + group);    \
        }                                                                                             \
    }
#endif

/* Compute `rows` rows (1 to TILE_ROWS) of `vectors` vectors of outputs. Both are constants where this is inlined. */
INLINE void NAME(tile)(const NAME(Product) *product, size_t row, size_t output, const int rows, const int vectors) {
    size_t inputs = padded(product->matrix->inputs);
    const int8_t *weights = product->matrix->weights + output / BLOCK * BLOCK * inputs + output % BLOCK * TOGETHER;
    const int8_t *quantized = (const int8_t *)(product->quantized + row * inputs);
    int32x4_t low[TILE_ROWS][8] = {0}, high[TILE_ROWS][8] = {0};
    for (size_t at = 0; at < inputs; at += 8) {
        int8x16_t split[TILE_ROWS];
#pragma GCC unroll 4
        for (int one = 0; one < rows; one++) split[one] = vld1q_s8(quantized + 2 * (one * inputs + at));
#if TOGETHER == 4
        GROUP(0)
        GROUP(1)
#else
        /* A matrix product has low and high byte as two rows. Here `low` is that of outputs 0 and 1 of a vector, and
           `high` that of outputs 2 and 3. */
#pragma GCC unroll 8
        for (int vector = 0; vector < vectors; vector++) {
            const int8_t *pair = weights + at * BLOCK + vector * 32;
            int8x16_t first = vld1q_s8(pair), second = vld1q_s8(pair + 16);
#pragma GCC unroll 4
            for (int one = 0; one < rows; one++) {
                low[one][vector] = vmmlaq_s32(low[one][vector], split[one], first);
                high[one][vector] = vmmlaq_s32(high[one][vector], split[one], second);
            }
        }
#endif
    }
#pragma GCC unroll 4
    for (int one = 0; one < rows; one++)
#pragma GCC unroll 8
        for (int vector = 0; vector < vectors; vector++) {
            int32x4_t lows = low[one][vector], highs = high[one][vector];
#if TOGETHER == 8
            int32x4_t first = lows;
            lows = vcombine_s32(vget_low_s32(first), vget_low_s32(highs));
            highs = vcombine_s32(vget_high_s32(first), vget_high_s32(highs));
#endif
            NAME(finish)(product, row + one, output + vector * LANES, NAME(joined)(lows, highs));
        }
}
#undef GROUP
