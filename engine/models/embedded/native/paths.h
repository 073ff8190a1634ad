/* The paths: one pass, compiled for what processors have. The best one is chosen when a model is loaded. */
#ifndef MIDSPAN_PATHS_H
#define MIDSPAN_PATHS_H

#include "network.h"

/* TARGET: the instructions. LANES: numbers in a vector. TILE_ROWS, TILE_VECTORS: how many rows and vectors of outputs a
   product sums at once, and HEAD_ROWS, HEAD_VECTORS in attention: as many as there are registers for; at most 6 and 4.
   TOGETHER: how many inputs of an output are packed together. With 2, ADD_PAIRS adds products of pairs of int16;
   with 4 and 8 rows are split into bytes (dots.h). */

typedef struct {
    const char *name;
    void (*run)(const Network *, const Batch *, const Scratch *);
    size_t together; /* inputs of an output that are packed together */
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
typedef int8_t Bytes __attribute__((vector_size(8)));
typedef int16_t Pairs __attribute__((vector_size(16)));
typedef int32_t Sums __attribute__((vector_size(16)));

/* gcc would widen and multiply pairs one number after the other, so processors with instructions for it get them. */
static inline Sums widened(const int8_t *from) {
#if defined(__SSE2__)
    __m128i narrow = _mm_loadl_epi64((const __m128i *)from);
    return (Sums)_mm_srai_epi16(_mm_unpacklo_epi8(narrow, narrow), 8);
#elif defined(__aarch64__)
    return (Sums)vmovl_s8(vld1_s8(from));
#else
    Bytes narrow;
    memcpy(&narrow, from, sizeof narrow);
    return (Sums)__builtin_convertvector(narrow, Pairs);
#endif
}

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

#define PATH plain
#define TARGET
#define TOGETHER 2
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
#define LOAD_WEIGHTS(from) (ints) widened(from)
#define ALL_PAIRS(numbers) ((ints){0} + (numbers))
#define ADD_PAIRS(sum, a, b) (sum) + (ints)pair_products((Sums)(a), (Sums)(b))
#include "path.h"

#define PATHS 4

/* Write the paths, the fastest first. */
static void find_paths(Path paths[PATHS]) {
    for (int path = 0; path < PATHS; path++) paths[path] = (Path){NULL, NULL, 0, 0};
    find_own_paths(paths);
    paths[PATHS - 1] = (Path){"plain", run_plain, 2, 1};
}
#endif
