// Reduces bytes to 16 with the same CRC, by carry-less multiplication (PCLMULQDQ).
//
// A block of 16 bytes is a polynomial over GF(2), times x^128 if another block follows. The
// products of its halves with two constants have 128 bits again, and are added to the block that
// follows
// ("Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Gopal et al. 2009).
// The first block is the one that bytes may not fill: zeros before them do not change a CRC.
//
// Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trainyard {

// The powers x^191 and x^127 modulo the CRC's polynomial. The highest bit is x^0.
struct ReductionConstants {
  uint64_t first, second;
};

// Sixteen bytes, as two little-endian words.
struct ReducedBytes {
  uint64_t first, second;
};

// False on processors without the instruction, and before static objects are initialised.
extern const bool kReducesCrc;

inline constexpr size_t kReducedBytesMin = 32;  // of fewer bytes, tables are as fast

// Returns bytes that lead from the register 0 to the same register as `bytes` from `sum`. Requires:
// kReducesCrc, and at least kReducedBytesMin bytes.
ReducedBytes reduce_crc(uint64_t sum, std::string_view bytes, const ReductionConstants& constants);

}  // namespace trainyard
