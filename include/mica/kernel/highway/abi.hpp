// SPDX-License-Identifier: Apache-2.0
//
// The names of namespaces, which come from the compiler's macros because they have to be known before the
// first Highway header.
#pragma once

#include "mica/version.hpp"

/// The instruction set of the compiler's flags.
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

/// Both make a_b of two words; the second expands macros in the words first.
#define MICA_ABI_JOIN_(a, b) a##_##b
#define MICA_ABI_JOIN(a, b) MICA_ABI_JOIN_(a, b)

/// The namespace of everything that depends on compiler flags, so that units built with different flags have
/// different symbols and may be linked together.
#ifdef HWY_COMPILE_ONLY_STATIC
#define MICA_ABI MICA_ABI_JOIN(one, MICA_ABI_BASELINE)
#else
#define MICA_ABI MICA_ABI_JOIN(many, MICA_ABI_BASELINE)
#endif

/// The settings that change inline functions.
#if defined(MICA_NO_BYTE_DOTS)
#define MICA_ABI_DOTS no_byte_dots
#elif defined(MICA_EVEX_DOTS)
#define MICA_ABI_DOTS evex_dots
#else
#define MICA_ABI_DOTS byte_dots
#endif
#ifdef MICA_NO_MATRIX_UNIT
#define MICA_ABI_SETTINGS MICA_ABI_JOIN(MICA_ABI_DOTS, no_matrix_unit)
#else
#define MICA_ABI_SETTINGS MICA_ABI_JOIN(MICA_ABI_DOTS, matrix_unit)
#endif

/// The namespace of the functions that units define for users, as a compiled library has them. Headers of
/// another version, or with other settings, do not link with it.
#define MICA_KERNELS_ABI MICA_ABI_JOIN(MICA_VERSION_NAME, MICA_ABI_SETTINGS)

/// The namespace of kernels that are compiled once per instruction set.
#define MICA_PER_TARGET mica::kernel::highway::inline MICA_ABI::HWY_NAMESPACE
