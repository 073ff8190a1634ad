/* One path's vectors, from LANES, TARGET, PATH and the macros of paths.h. Included once for each path by path.h. */
#define JOIN_(name, path) name##_##path
#define JOIN(name, path) JOIN_(name, path)
#define NAME(name) JOIN(name, PATH)
#define FUNCTION static TARGET
#define INLINE static inline __attribute__((always_inline)) TARGET

typedef float NAME(floats) __attribute__((vector_size(4 * LANES)));
typedef int32_t NAME(ints) __attribute__((vector_size(4 * LANES)));
typedef uint32_t NAME(bits) __attribute__((vector_size(4 * LANES)));
#define floats NAME(floats)
#define ints NAME(ints)
#define bits NAME(bits)

INLINE floats NAME(load)(const float *from) {
    floats value;
    memcpy(&value, from, sizeof value);
    return value;
}

INLINE void NAME(store)(float *to, floats value) { memcpy(to, &value, sizeof value); }

INLINE floats NAME(all)(float value) { return value - (floats){0}; }

INLINE floats NAME(absolute)(floats value) { return (floats)((bits)value & 0x7fffffffu); }

INLINE floats NAME(select)(ints mask, floats yes, floats no) {
    return (floats)(((ints)yes & mask) | ((ints)no & ~mask));
}

/* Compilers see no maximum in a comparison and a selection of vectors. */
INLINE floats NAME(maximum)(floats one, floats other) {
#ifdef MAXIMUM
    return MAXIMUM(one, other);
#else
    return NAME(select)(one > other, one, other);
#endif
}

/* In pairs of lanes, not one after the other: each addition would wait for the one before it. */
INLINE float NAME(sum_of)(floats value) {
    float lanes[LANES];
    memcpy(lanes, &value, sizeof lanes);
#pragma GCC unroll 4
    for (int half = LANES / 2; half; half /= 2)
#pragma GCC unroll 8
        for (int lane = 0; lane < half; lane++) lanes[lane] += lanes[lane + half];
    return lanes[0];
}

INLINE int32_t NAME(whole_sum_of)(ints value) {
#ifdef WHOLE_SUM_OF
    return WHOLE_SUM_OF(value);
#else
    uint32_t lanes[LANES], sum = 0;
    memcpy(lanes, &value, sizeof lanes);
    for (int lane = 0; lane < LANES; lane++) sum += lanes[lane];
    return (int32_t)sum;
#endif
}

INLINE float NAME(largest_of)(floats value) {
#ifdef LARGEST_OF
    return LARGEST_OF(value);
#else
    float lanes[LANES];
    memcpy(lanes, &value, sizeof lanes);
#pragma GCC unroll 4
    for (int half = LANES / 2; half; half /= 2)
#pragma GCC unroll 8
        for (int lane = 0; lane < half; lane++)
            lanes[lane] = lanes[lane] > lanes[lane + half] ? lanes[lane] : lanes[lane + half];
    return lanes[0];
#endif
}

#define MAGIC 12582912.0f /* 1.5 * 2^23: adding it rounds to a whole number, which is in the low bits */

/* Round to the nearest whole number, even in the middle; for values below 2^22. */
INLINE ints NAME(rounded)(floats value) { return (ints)((bits)(value + MAGIC) - (bits)NAME(all)(MAGIC)); }

/* e to the power of values that are at most 0, with an error of a few units in the last place; 0 below -87. */
INLINE floats NAME(power)(floats value) {
    ints known = value > -87.0f;
    floats scaled = NAME(select)(known, value, NAME(all)(0)) * 1.44269504f;
    ints whole = NAME(rounded)(scaled);
    floats part = scaled - __builtin_convertvector(whole, floats);
    floats sum = NAME(all)(1.54035304e-4f);
    sum = MULTIPLY_ADD(sum, part, NAME(all)(1.33335581e-3f));
    sum = MULTIPLY_ADD(sum, part, NAME(all)(9.61812911e-3f));
    sum = MULTIPLY_ADD(sum, part, NAME(all)(5.55041087e-2f));
    sum = MULTIPLY_ADD(sum, part, NAME(all)(2.40226507e-1f));
    sum = MULTIPLY_ADD(sum, part, NAME(all)(6.93147181e-1f));
    sum = MULTIPLY_ADD(sum, part, NAME(all)(1.0f));
    return (floats)(((bits)sum + ((bits)whole << 23)) & (bits)known);
}

/* value / (1 + e to the power of -value). That power could overflow, but not that of what is never positive. */
INLINE floats NAME(silu)(floats value) {
    floats power = NAME(power)(-NAME(absolute)(value));
    return value * NAME(select)(value < 0, power, NAME(all)(1.0f)) / (power + 1.0f);
}

/* Return what a row [width] is multiplied with to have unit mean square. */
INLINE float NAME(norm_factor)(const float *row, size_t width, float epsilon) {
    floats squares = NAME(all)(0);
    for (size_t at = 0; at < width; at += LANES) {
        floats value = NAME(load)(row + at);
        squares = MULTIPLY_ADD(value, value, squares);
    }
    return 1.0f / sqrtf(NAME(sum_of)(squares) / (float)width + epsilon);
}

#define MOST_HALF 65504.0f

/* Keys and values are stored in fp16, those beyond its largest number as that number. */
INLINE floats NAME(load_half)(const uint16_t *from) {
#ifdef LOAD_HALVES
    return LOAD_HALVES(from);
#else
    typedef uint16_t halves __attribute__((vector_size(2 * LANES)));
    halves narrow;
    memcpy(&narrow, from, sizeof narrow);
    bits wide = __builtin_convertvector(narrow, bits);
    floats size = (floats)((wide & 0x7fffu) << 13) * 0x1p112f; /* the exponent's bias: 127 - 15 */
    return (floats)((bits)size | (wide & 0x8000u) << 16);
#endif
}

INLINE void NAME(store_half)(uint16_t *to, floats value) {
    value = NAME(select)(value > MOST_HALF, NAME(all)(MOST_HALF), value);
    value = NAME(select)(value < -MOST_HALF, NAME(all)(-MOST_HALF), value);
#ifdef STORE_HALVES
    STORE_HALVES(to, value);
#else
    bits size = (bits)(NAME(absolute)(value) * 0x1p-112f);
    size = (size + 0xfffu + (size >> 13 & 1u)) >> 13 | ((bits)value & 0x80000000u) >> 16;
    typedef uint16_t halves __attribute__((vector_size(2 * LANES)));
    halves narrow = __builtin_convertvector(size, halves);
    memcpy(to, &narrow, sizeof narrow);
#endif
}
