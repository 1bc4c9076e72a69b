// SPDX-License-Identifier: Apache-2.0
//
// MICA_ABI names the namespace of everything that depends on compiler flags, so that units built with
// different flags have different symbols and may be linked together. It comes from the compiler's macros
// because it has to be known before the first Highway header. MICA_PER_TARGET is the namespace of what is
// compiled once per instruction set.
#pragma once

#if defined(__AVX512FP16__)
#define MICA_ABI_BASELINE avx512fp16
#elif defined(__AVX512VNNI__)
#define MICA_ABI_BASELINE avx512vnni
#elif defined(__AVX512BW__)
#define MICA_ABI_BASELINE avx512bw
#elif defined(__AVXVNNI__)
#define MICA_ABI_BASELINE avxvnni
#elif defined(__AVX2__)
#define MICA_ABI_BASELINE avx2
#elif defined(__ARM_FEATURE_DOTPROD)
#define MICA_ABI_BASELINE dotprod
#else
#define MICA_ABI_BASELINE baseline
#endif

#define MICA_ABI_JOIN_(a, b) a##_##b
#define MICA_ABI_JOIN(a, b) MICA_ABI_JOIN_(a, b)
#ifdef HWY_COMPILE_ONLY_STATIC
#define MICA_ABI MICA_ABI_JOIN(one, MICA_ABI_BASELINE)
#else
#define MICA_ABI MICA_ABI_JOIN(many, MICA_ABI_BASELINE)
#endif

#define MICA_PER_TARGET mica::kernel::highway::inline MICA_ABI::HWY_NAMESPACE
