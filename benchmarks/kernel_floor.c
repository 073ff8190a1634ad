/* What a processor's arithmetic allows, for benchmarks/kernel.py: prints, for each path of the kernel, how many
   products of int16 and of fp32 it adds up in a second from registers alone, and how many bytes of weights it reads.
   Its argument is the size of the weights in bytes. */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SUMS 10 /* enough that each waits for no other */
#define ROUNDS 2000000
#define TURNS 20

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The empty instruction keeps the compiler from computing the product once for all sums. */
#define STEP(sum, ADD, a, b)      \
    __asm__ volatile("" : "+x"(a), "+x"(b)); \
    sum = ADD(a, b, sum);         \
    __asm__ volatile("" : "+x"(sum));

#define MEASURE(NAME, TARGET, VECTOR, ADD, FLOATS, MULTIPLY, LOAD, INTS, REALS)                                        \
    __attribute__((target(TARGET))) static void NAME(const char *name, const char *weights, size_t size) {             \
        double best[3] = {1e9, 1e9, 1e9};                                                                              \
        for (int turn = 0; turn < TURNS; turn++) {                                                                     \
            VECTOR one = {0}, other = {0}, sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0}, sum4 = {0}, sum5 = {0};     \
            VECTOR sum6 = {0}, sum7 = {0}, sum8 = {0}, sum9 = {0};                                                     \
            FLOATS first = {0}, second = {0}, all0 = {0}, all1 = {0}, all2 = {0}, all3 = {0}, all4 = {0}, all5 = {0};  \
            FLOATS all6 = {0}, all7 = {0}, all8 = {0}, all9 = {0};                                                     \
            double times[4] = {seconds()};                                                                             \
            for (int round = 0; round < ROUNDS; round++) {                                                             \
                STEP(sum0, ADD, one, other) STEP(sum1, ADD, one, other) STEP(sum2, ADD, one, other)                    \
                STEP(sum3, ADD, one, other) STEP(sum4, ADD, one, other) STEP(sum5, ADD, one, other)                    \
                STEP(sum6, ADD, one, other) STEP(sum7, ADD, one, other) STEP(sum8, ADD, one, other)                    \
                STEP(sum9, ADD, one, other)                                                                            \
            }                                                                                                          \
            times[1] = seconds();                                                                                      \
            for (int round = 0; round < ROUNDS; round++) {                                                             \
                STEP(all0, MULTIPLY, first, second) STEP(all1, MULTIPLY, first, second)                                \
                STEP(all2, MULTIPLY, first, second) STEP(all3, MULTIPLY, first, second)                                \
                STEP(all4, MULTIPLY, first, second) STEP(all5, MULTIPLY, first, second)                                \
                STEP(all6, MULTIPLY, first, second) STEP(all7, MULTIPLY, first, second)                                \
                STEP(all8, MULTIPLY, first, second) STEP(all9, MULTIPLY, first, second)                                \
            }                                                                                                          \
            times[2] = seconds();                                                                                      \
            for (size_t at = 0; at < size; at += 4 * sizeof one) {                                                     \
                VECTOR part0 = LOAD((const void *)(weights + at));                                                     \
                VECTOR part1 = LOAD((const void *)(weights + at + sizeof one));                                        \
                VECTOR part2 = LOAD((const void *)(weights + at + 2 * sizeof one));                                    \
                VECTOR part3 = LOAD((const void *)(weights + at + 3 * sizeof one));                                    \
                __asm__ volatile("" ::"x"(part0), "x"(part1), "x"(part2), "x"(part3));                                 \
            }                                                                                                          \
            times[3] = seconds();                                                                                      \
            for (int kind = 0; kind < 3; kind++)                                                                       \
                if (times[kind + 1] - times[kind] < best[kind]) best[kind] = times[kind + 1] - times[kind];            \
        }                                                                                                              \
        double count = (double)ROUNDS * SUMS;                                                                          \
        printf("%s %g %g %g\n", name, count * INTS / best[0], count * REALS / best[1], (double)size / best[2]);        \
    }

#define ADD_256(a, b, sum) _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
#define ADD_128(a, b, sum) _mm_add_epi32(sum, _mm_madd_epi16(a, b))
#define ADD_512(a, b, sum) _mm512_dpwssd_epi32(sum, a, b)
#define ADD_VNNI(a, b, sum) _mm256_dpwssd_avx_epi32(sum, a, b)
#define MULTIPLY_128(a, b, sum) _mm_add_ps(sum, _mm_mul_ps(a, b))

MEASURE(avx512, "avx512f,avx512vnni,avx512bw", __m512i, ADD_512, __m512, _mm512_fmadd_ps, _mm512_loadu_si512, 32, 16)
MEASURE(avxvnni, "avxvnni,avx2,fma", __m256i, ADD_VNNI, __m256, _mm256_fmadd_ps, _mm256_loadu_si256, 16, 8)
MEASURE(avx2, "avx2,fma", __m256i, ADD_256, __m256, _mm256_fmadd_ps, _mm256_loadu_si256, 16, 8)
MEASURE(plain, "sse2", __m128i, ADD_128, __m128, MULTIPLY_128, _mm_loadu_si128, 8, 4)

int main(int count, char **arguments) {
    size_t size = (count > 1 ? strtoul(arguments[1], NULL, 10) : 1) / 256 * 256 + 256;
    char *weights = malloc(size);
    if (!weights) return 1;
    memset(weights, 1, size);
    for (int at = 2; at < count; at++) {
        if (!strcmp(arguments[at], "avx512-vnni")) avx512(arguments[at], weights, size);
        if (!strcmp(arguments[at], "avx-vnni")) avxvnni(arguments[at], weights, size);
        if (!strcmp(arguments[at], "avx2")) avx2(arguments[at], weights, size);
        if (!strcmp(arguments[at], "plain")) plain(arguments[at], weights, size);
    }
    free(weights);
    return 0;
}
