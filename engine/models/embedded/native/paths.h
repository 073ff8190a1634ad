/* The paths: one pass, compiled for what processors have. The best one is chosen when a model is loaded. */
#ifndef MIDSPAN_PATHS_H
#define MIDSPAN_PATHS_H

#include "network.h"

/* TARGET: the instructions. LANES: numbers in a vector. TILE_ROWS, TILE_VECTORS: how many rows and vectors of outputs a
   product sums at once (ROW_VECTORS for a single row), and HEAD_ROWS, HEAD_VECTORS in attention: as many as there are
   registers for; at most 6 and 8, and 6 and 4.
   NARROW(to, whole) writes whole numbers as int8: compilers convert vectors to bytes one number after the other.
   ADD_DOT(sum, a, x) adds the products of 4 weights of 8 bits and 4 numbers of a row in each lane. The weights have
   ADDED_TO_8 added: 128 where the instruction takes them without a sign, else 0. ADD_SMALL does so for weights from 0
   to 15. Where it sums in int16, WIDEN gives the sums in int32. */

#define MOST_VECTORS 8
#define AHEAD 8192 /* bytes: how far ahead of a product weights are asked for */

#define CHUNK 192 /* rows of a product's task: what is quantized of them stays in the second cache */

typedef struct {
    const char *name;
    void (*run)(const Network *, const Batch *, const Scratch *, Team *, size_t threads);
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

/* gcc would multiply pairs one number after the other, so processors with an instruction for it get that. */
static inline Sums pair_products(Pairs a, Pairs b) {
#if defined(__SSE2__)
    return (Sums)_mm_madd_epi16((__m128i)a, (__m128i)b);
#elif defined(__aarch64__)
    int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)a), vget_low_s16((int16x8_t)b));
    return (Sums)vpaddq_s32(low, vmull_high_s16((int16x8_t)a, (int16x8_t)b));
#else
    return ((Sums)a << 16 >> 16) * ((Sums)b << 16 >> 16) + ((Sums)a >> 16) * ((Sums)b >> 16);
#endif
}

/* The products of 4 int8 in each lane: of the even ones and of the odd ones. */
static inline Sums four_products(Sums a, Sums b) {
    typedef uint16_t Shifted __attribute__((vector_size(16)));
    Pairs even_a = (Pairs)((Shifted)a << 8) >> 8, even_b = (Pairs)((Shifted)b << 8) >> 8;
    return pair_products(even_a, even_b) + pair_products((Pairs)a >> 8, (Pairs)b >> 8);
}

static inline void narrow_plain(int8_t *to, Sums whole) {
    for (int lane = 0; lane < 4; lane++) to[lane] = (int8_t)whole[lane];
}

#define PATH plain
#define TARGET
#define LANES 4
#define ROW_VECTORS 4
#define TILE_ROWS 4
#define TILE_VECTORS 2
#define HEAD_ROWS 4
#define HEAD_VECTORS 2
#define MULTIPLY_ADD(a, b, c) (a) * (b) + (c)
#if defined(__SSE2__)
#define MAXIMUM(a, b) (floats) _mm_max_ps((__m128)(a), (__m128)(b))
#elif defined(__aarch64__)
#define MAXIMUM(a, b) (floats) vmaxq_f32((float32x4_t)(a), (float32x4_t)(b))
#endif
#define NARROW(to, whole) narrow_plain((int8_t *)(to), (Sums)(whole))
#define ADD_DOT(sum, a, x) (sum) + (ints)four_products((Sums)(a), (Sums)(x))
#define ADD_SMALL ADD_DOT
#define ADDED_TO_8 0
#include "path.h"

#define PATHS 4

/* Write the paths, the fastest first. */
static void find_paths(Path paths[PATHS]) {
    for (int path = 0; path < PATHS; path++) paths[path] = (Path){NULL, NULL, 0};
    find_own_paths(paths);
    paths[PATHS - 1] = (Path){"plain", run_plain, 1};
}
#endif
