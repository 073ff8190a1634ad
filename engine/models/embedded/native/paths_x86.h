/* The paths of x86-64. Included by paths.h alone. */
#include <cpuid.h>
#include <immintrin.h>

#define PATH avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")))
#define LANES 16
#define ROW_VECTORS 4
#define TILE_ROWS 6
#define TILE_VECTORS 4
#define HEAD_ROWS 6
#define HEAD_VECTORS 4
#define MULTIPLY_ADD(a, b, c) (floats) _mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c))
#define MAXIMUM(a, b) (floats) _mm512_max_ps((__m512)(a), (__m512)(b))
#define LARGEST_OF(value) _mm512_reduce_max_ps((__m512)(value))
#define WHOLE_SUM_OF(value) _mm512_reduce_add_epi32((__m512i)(value))
#define NARROW(to, whole) _mm_storeu_si128((__m128i *)(to), _mm512_cvtepi32_epi8((__m512i)(whole)))
#define ADD_DOT(sum, a, x) (ints) _mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(a), (__m512i)(x))
#define ADD_SMALL ADD_DOT
#define ADDED_TO_8 128
#define LOAD_HALVES(from) (floats) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from)))
#define STORE_HALVES(to, value) _mm256_storeu_si256((__m256i *)(to), _mm512_cvtps_ph((__m512)(value), 0))
#include "path.h"

/* The two paths of 8 lanes differ in ADD_DOT and ADD_SMALL alone. */
#define MULTIPLY_ADD_8(a, b, c) (floats) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#define MAXIMUM_8(a, b) (floats) _mm256_max_ps((__m256)(a), (__m256)(b))
#define NARROW_8(to, whole) narrow_8((int8_t *)(to), (__m256i)(whole))
#define LOAD_HALVES_8(from) (floats) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from)))
#define STORE_HALVES_8(to, value) _mm_storeu_si128((__m128i *)(to), _mm256_cvtps_ph((__m256)(value), 0))

static inline __attribute__((always_inline, target("avx2"))) void narrow_8(int8_t *to, __m256i whole) {
    __m128i shorts = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64((__m128i *)to, _mm_packs_epi16(shorts, shorts));
}

#if (defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 11)
#define HAS_AVX_VNNI
#define PATH avxvnni
#define TARGET __attribute__((target("avxvnni,avx2,fma,f16c")))
#define LANES 8
#define ROW_VECTORS 8
#define TILE_ROWS 6
#define TILE_VECTORS 2
#define HEAD_ROWS 6
#define HEAD_VECTORS 2
#define MULTIPLY_ADD MULTIPLY_ADD_8
#define MAXIMUM MAXIMUM_8
#define NARROW NARROW_8
#define ADD_DOT(sum, a, x) (ints) _mm256_dpbusd_avx_epi32((__m256i)(sum), (__m256i)(a), (__m256i)(x))
#define ADD_SMALL ADD_DOT
#define ADDED_TO_8 128
#define LOAD_HALVES LOAD_HALVES_8
#define STORE_HALVES STORE_HALVES_8
#include "path.h"
#endif

/* The products of 4 int8 in each lane. The instruction for bytes would saturate: two products can exceed 16 bits. With
   weights from 0 to 15, sums of 16 products cannot. */
static inline __attribute__((always_inline, target("avx2"))) __m256i four_products_8(__m256i a, __m256i b) {
    __m256i even_a = _mm256_srai_epi16(_mm256_slli_epi16(a, 8), 8), odd_a = _mm256_srai_epi16(a, 8);
    __m256i even_b = _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8), odd_b = _mm256_srai_epi16(b, 8);
    return _mm256_add_epi32(_mm256_madd_epi16(even_a, even_b), _mm256_madd_epi16(odd_a, odd_b));
}

#define PATH avx2
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define LANES 8
#define ROW_VECTORS 8
#define TILE_ROWS 4
#define TILE_VECTORS 2
#define HEAD_ROWS 6
#define HEAD_VECTORS 2
#define MULTIPLY_ADD MULTIPLY_ADD_8
#define MAXIMUM MAXIMUM_8
#define NARROW NARROW_8
#define ADD_DOT(sum, a, x) (sum) + (ints)four_products_8((__m256i)(a), (__m256i)(x))
#define ADD_SMALL(sum, a, x) \
    (ints) _mm256_add_epi16((__m256i)(sum), _mm256_maddubs_epi16((__m256i)(a), (__m256i)(x)))
#define WIDEN(sum) (ints) _mm256_madd_epi16((__m256i)(sum), _mm256_set1_epi16(1))
#define ADDED_TO_8 0
#define LOAD_HALVES LOAD_HALVES_8
#define STORE_HALVES STORE_HALVES_8
#include "path.h"

/* Write the paths that this processor may have, the fastest first. */
static void find_own_paths(Path *paths) {
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    int avx512 = avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
    paths[0] = (Path){"avx512-vnni", run_avx512, avx512};
#ifdef HAS_AVX_VNNI
    unsigned eax = 0, ebx, ecx, edx;
    int known = __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx);
    paths[1] = (Path){"avx-vnni", run_avxvnni, avx2 && known && (eax >> 4 & 1)};
#endif
    paths[2] = (Path){"avx2", run_avx2, avx2};
}
