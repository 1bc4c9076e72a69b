// SPDX-License-Identifier: Apache-2.0
//
// Per target: the matrix unit (machine_options.hpp) as its users set it up. One instruction adds to a tile of
// sums, [rows][16 columns], the dots of a tile of signed bytes, [rows][k], with another one, [k / 4][16
// columns][4].
//
//   tiles    0 to 3 sums; 4 and 5 rows; 6 and 7 columns
//
// Instructions by the letter: the rest of a unit of compilation lacks the flags.

#if defined(MICA_KERNEL_HIGHWAY_MATRIX_TILES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_MATRIX_TILES_INL_HPP
#undef MICA_KERNEL_HIGHWAY_MATRIX_TILES_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_MATRIX_TILES_INL_HPP
#endif

#include "mica/kernel/highway/machine_options.hpp"
#include "mica/kernel/highway/ops-inl.hpp"

#undef MICA_MATRIX_UNIT
#if HWY_TARGET == HWY_AVX3_SPR && HWY_ARCH_X86_64 && defined(__linux__) && !defined(MICA_NO_MATRIX_UNIT)
#define MICA_MATRIX_UNIT 1
#else
#define MICA_MATRIX_UNIT 0
#endif

#if MICA_VECTORS && MICA_MATRIX_UNIT
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// Rows and columns of a tile of sums.
inline constexpr std::size_t matrix_rows = 16, matrix_columns = 16;

/// The most values that one instruction takes.
inline constexpr std::size_t matrix_depth_max = 64;

/// Integer sums of four tiles.
using MatrixSums = std::int32_t[4][matrix_rows][matrix_columns];

/// The unit, set up for dots of `depth` values of `rows` rows while this lives.
class MatrixTiles {
 public:
  HWY_INLINE explicit MatrixTiles(std::size_t depth, std::size_t rows = matrix_rows) {
    struct alignas(64) Shapes {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } shapes;
    for (std::size_t i = 0; i < 8; ++i) {
      shapes.row_bytes[i] = static_cast<std::uint16_t>(i == 4 || i == 5 ? depth : 64);
      shapes.rows[i] = static_cast<std::uint8_t>(i < 6 ? rows : depth / 4);
    }
    asm volatile("ldtilecfg %0" : : "m"(shapes));
  }
  MatrixTiles(const MatrixTiles&) = delete;
  MatrixTiles& operator=(const MatrixTiles&) = delete;
  HWY_INLINE ~MatrixTiles() { asm volatile("tilerelease" : :); }
};

HWY_INLINE void clear_sums() {
  asm volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" : :);
}

/// Writes all tiles of sums.
HWY_INLINE void store_sums(MatrixSums& sums) {
  const std::size_t line = 64;
  asm volatile(
      "tilestored %%tmm0, (%0,%1,1)\n\ttilestored %%tmm1, 1024(%0,%1,1)\n\t"
      "tilestored %%tmm2, 2048(%0,%1,1)\n\ttilestored %%tmm3, 3072(%0,%1,1)"
      :
      : "r"(&sums), "r"(line)
      : "memory");
}

/// Adds the dots of rows, `stride` bytes apart, with four tiles of columns, the fours of which are
/// `four_bytes` apart.
HWY_INLINE void add_matrix_dots(const std::int8_t* rows, std::size_t stride,
                                const std::int8_t* const (&columns)[4], std::size_t four_bytes) {
  asm volatile(
      "tileloadd (%0,%1,1), %%tmm4\n\t"
      "tileloadd (%2,%6,1), %%tmm6\n\ttdpbssd %%tmm6, %%tmm4, %%tmm0\n\t"
      "tileloadd (%3,%6,1), %%tmm7\n\ttdpbssd %%tmm7, %%tmm4, %%tmm1\n\t"
      "tileloadd (%4,%6,1), %%tmm6\n\ttdpbssd %%tmm6, %%tmm4, %%tmm2\n\t"
      "tileloadd (%5,%6,1), %%tmm7\n\ttdpbssd %%tmm7, %%tmm4, %%tmm3"
      :
      : "r"(rows), "r"(stride), "r"(columns[0]), "r"(columns[1]), "r"(columns[2]), "r"(columns[3]),
        "r"(four_bytes)
      : "memory");
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS && MICA_MATRIX_UNIT
#endif
