/* The paths: one pass, compiled for what processors have. The best one is chosen when a model is loaded. */
#ifndef MIDSPAN_PATHS_H
#define MIDSPAN_PATHS_H

#include "network.h"
#include "pool.h"

/* TARGET: the instructions. LANES: numbers in a vector. TILE_ROWS, TILE_VECTORS: how many rows and vectors of outputs
   a product sums at once, ROW_VECTORS and TILE_PAIR: how many vectors where there are one or two rows; HEAD_ROWS, HEAD_VECTORS the same in attention: as
   many as there are registers for, at most 6 and 4. DOT8 adds to each lane the products of its four bytes, in a from 0 to 255, in b
   from -127 to 127. DOT4 does it twice, with a and c from 0 to 15. */

typedef struct {
    const char *name;
    void (*run)(const Network *, const Batch *, const Scratch *, Pool *);
    int available;
} Path;

#if defined(__x86_64__)
#include "paths_x86.h"
#elif defined(__aarch64__)
#include "paths_arm.h"
#else
static void find_own_paths(Path *paths) { (void)paths; }
#endif

/* For any processor: vectors of 4, which the compiler maps to SSE2 and to NEON. */
typedef int16_t Pairs __attribute__((vector_size(16)));
typedef int32_t Sums __attribute__((vector_size(16)));

/* gcc would multiply pairs one number after the other, so processors with instructions for it get them. */
static inline Sums pair_products(Sums a, Sums b) {
#if defined(__SSE2__)
    return (Sums)_mm_madd_epi16((__m128i)a, (__m128i)b);
#elif defined(__aarch64__)
    int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)a), vget_low_s16((int16x8_t)b));
    return (Sums)vpaddq_s32(low, vmull_high_s16((int16x8_t)a, (int16x8_t)b));
#else
    return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

/* The bytes of even and of odd places are widened to pairs. */
static inline Sums byte_products(Sums a, Sums b) {
    Sums even = pair_products(a & 0x00ff00ff, (Sums)((Pairs)b << 8 >> 8));
    return even + pair_products((Sums)((Pairs)a >> 8 & 0xff), (Sums)((Pairs)b >> 8));
}

#define PATH plain
#define TARGET
#define LANES 4
#define TILE_ROWS 4
#define TILE_VECTORS 2
#define TILE_PAIR 2
#define ROW_VECTORS 4
#define HEAD_ROWS 4
#define HEAD_VECTORS 2
#define MULTIPLY_ADD(a, b, c) (a) * (b) + (c)
#if defined(__SSE2__)
#define MAXIMUM(a, b) (floats) _mm_max_ps((__m128)(a), (__m128)(b))
#elif defined(__aarch64__)
#define MAXIMUM(a, b) (floats) vmaxq_f32((float32x4_t)(a), (float32x4_t)(b))
#endif
#define DOT8(sum, a, b) (sum) + (ints)byte_products((Sums)(a), (Sums)(b))
#define DOT4(sum, a, b, c, d) DOT8(DOT8(sum, a, b), c, d)
#include "path.h"

#define PATHS 4

/* Write the paths, the fastest first. */
static void find_paths(Path paths[PATHS]) {
    for (int path = 0; path < PATHS; path++) paths[path] = (Path){NULL, NULL, 0};
    find_own_paths(paths);
    paths[PATHS - 1] = (Path){"plain", run_plain, 1};
}
#endif
