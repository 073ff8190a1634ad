/* The paths of 64-bit ARM: NEON with the dot product of int8. Included by paths.h alone. What lacks it takes the plain path, which the compiler maps to NEON. */
#include <arm_neon.h>

#if defined(__linux__)
#include <sys/auxv.h>
#endif

/* Compilers differ in how one function may use more than the build's processor has. On Apple's the build has it. */
#if defined(__ARM_FEATURE_DOTPROD)
#define DOT_TARGET
#elif defined(__clang__) && __clang_major__ >= 16
#define DOT_TARGET __attribute__((target("dotprod")))
#elif !defined(__clang__) && __GNUC__ >= 8
#define DOT_TARGET __attribute__((target("arch=armv8.2-a+dotprod")))
#endif

static inline void narrow_4(int8_t *to, int32x4_t whole) {
    int16x4_t shorts = vmovn_s32(whole);
    int8x8_t bytes = vmovn_s16(vcombine_s16(shorts, shorts));
    memcpy(to, &bytes, 4);
}

#ifdef DOT_TARGET
#define PATH dot
#define TARGET DOT_TARGET
#define LANES 4
#define ROW_VECTORS 8
#define TILE_ROWS 4
#define TILE_VECTORS 4
#define HEAD_ROWS 6
#define HEAD_VECTORS 4
#define MULTIPLY_ADD(a, b, c) (floats) vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b))
#define MAXIMUM(a, b) (floats) vmaxq_f32((float32x4_t)(a), (float32x4_t)(b))
#define LOAD_HALVES(from) (floats) vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)))
#define STORE_HALVES(to, value) vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)(value))))
#define NARROW(to, whole) narrow_4((int8_t *)(to), (int32x4_t)(whole))
#define ADD_DOT(sum, a, x) (ints) vdotq_s32((int32x4_t)(sum), (int8x16_t)(a), (int8x16_t)(x))
#define ADD_SMALL ADD_DOT
#define ADDED_TO_8 0
#include "path.h"
#endif

/* Write the paths that this processor may have, the fastest first. */
static void find_own_paths(Path *paths) {
    int dot = 0;
#if defined(__APPLE__)
    dot = 1; /* in every processor of Apple's that runs macOS */
#elif defined(__linux__)
    dot = (int)(getauxval(AT_HWCAP) >> 20 & 1); /* HWCAP_ASIMDDP */
#endif
#ifdef DOT_TARGET
    paths[0] = (Path){"neon-dot", run_dot, dot};
#endif
    (void)dot, (void)paths;
}
